//! Converts TOML to a tree.

use super::{Field, Node, Position, Value, invalid};
use crate::error::Error;
use std::ops::Range;
use std::path::Path;

pub(crate) fn from_toml(text: &str, file: &Path) -> Result<Node, Error> {
    let document = toml_edit::Document::parse(text).map_err(|e| {
        let at = e
            .span()
            .map_or_else(Position::default, |span| position(text, span.start));
        // The parser lists its expectations on separate lines.
        let message = e.message().trim().lines().collect::<Vec<_>>().join(", ");
        invalid(file, at, format!("not valid TOML: {message}"))
    })?;
    let lines = Lines::new(text);
    Ok(Node {
        at: Position { line: 1, column: 1 },
        value: toml_table(document.as_table(), &lines, Position { line: 1, column: 1 }),
    })
}

/// Offsets of line starts, so that a position is found by binary search.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1));
        Self {
            text,
            starts: starts.collect(),
        }
    }

    fn at(&self, span: Option<Range<usize>>, otherwise: Position) -> Position {
        let Some(span) = span else { return otherwise };
        let line = self.starts.partition_point(|start| *start <= span.start);
        let start = self.starts[line - 1];
        Position {
            line,
            column: self.text[start..span.start].chars().count() + 1,
        }
    }
}

fn position(text: &str, offset: usize) -> Position {
    let offset = text.floor_char_boundary(offset);
    Lines::new(text).at(Some(offset..offset), Position::default())
}

fn toml_table(table: &dyn toml_edit::TableLike, lines: &Lines<'_>, near: Position) -> Value {
    let entries = table.iter().filter_map(|(name, _)| {
        let (key, item) = table.get_key_value(name)?;
        let at = lines.at(key.span(), near);
        Some(Field {
            key: name.to_owned(),
            at,
            node: toml_item(item, lines, at)?,
        })
    });
    Value::Table(entries.collect())
}

fn toml_item(item: &toml_edit::Item, lines: &Lines<'_>, near: Position) -> Option<Node> {
    let at = lines.at(item.span(), near);
    let value = match item {
        toml_edit::Item::None => return None,
        toml_edit::Item::Value(value) => return Some(toml_value(value, lines, near)),
        toml_edit::Item::Table(table) => toml_table(table, lines, at),
        toml_edit::Item::ArrayOfTables(tables) => {
            let items = tables.iter().map(|table| {
                let at = lines.at(table.span(), at);
                Node {
                    at,
                    value: toml_table(table, lines, at),
                }
            });
            Value::List(items.collect())
        }
    };
    Some(Node { at, value })
}

fn toml_value(value: &toml_edit::Value, lines: &Lines<'_>, near: Position) -> Node {
    let at = lines.at(value.span(), near);
    let value = match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::Integer(*number.value()),
        toml_edit::Value::Float(number) => Value::Float(*number.value()),
        toml_edit::Value::Boolean(flag) => Value::Bool(*flag.value()),
        toml_edit::Value::Datetime(date) => Value::Date(date.value().to_string()),
        toml_edit::Value::Array(items) => Value::List(
            items
                .iter()
                .map(|item| toml_value(item, lines, at))
                .collect(),
        ),
        toml_edit::Value::InlineTable(table) => toml_table(table, lines, at),
    };
    Node { at, value }
}
