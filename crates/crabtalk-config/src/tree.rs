//! TOML, YAML and JSON as one tree of values with positions.

pub(crate) mod reader;
mod toml;

pub(crate) use crabtalk_files::tree::{Field, Node, Position, Value};
pub(crate) use toml::from_toml;

use crate::error::{Diagnostic, Error};
use crabtalk_files::yaml::{self, Bounds};
use std::path::Path;

/// An agent with hundreds of permission rules has a few thousand values and three levels.
const YAML: Bounds = Bounds {
    nodes: 10_000,
    depth: 16,
    aliases: 64,
};

fn invalid(file: &Path, at: Position, message: String) -> Error {
    Error::Invalid(Diagnostic::new(file, at, message))
}

/// Reads YAML that begins `lines_before` lines into its file.
pub(crate) fn from_yaml(text: &str, file: &Path, lines_before: usize) -> Result<Node, Error> {
    // Empty lines in their place keep positions those of the file.
    let text = "\n".repeat(lines_before) + text;
    yaml::tree(&text, YAML).map_err(|e| {
        let at = e.at.unwrap_or_default();
        invalid(file, at, format!("not valid YAML: {}", e.message))
    })
}

/// Reads JSON. Its values have no positions; errors of syntax do.
pub(crate) fn from_json(text: &str, file: &Path) -> Result<Node, Error> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
        let message = e.to_string();
        let cut = message.rfind(" at line ").unwrap_or(message.len());
        let at = Position {
            line: e.line(),
            column: e.column(),
        };
        invalid(file, at, format!("not valid JSON: {}", &message[..cut]))
    })?;
    Ok(json_node(value))
}

pub(crate) fn json_node(value: serde_json::Value) -> Node {
    let value = match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Integer(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        serde_json::Value::String(text) => Value::String(text),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(json_node).collect()),
        serde_json::Value::Object(map) => Value::Table(
            map.into_iter()
                .map(|(key, value)| Field {
                    key,
                    at: Position::default(),
                    node: json_node(value),
                })
                .collect(),
        ),
    };
    Node {
        at: Position::default(),
        value,
    }
}

/// The language of a text in a protocol message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Toml,
    Yaml,
}

/// Reads a text of a protocol message: JSON when it begins with `{`, else
/// TOML, else YAML.
pub(crate) fn from_any(text: &str, file: &Path) -> Result<(Node, Language), Error> {
    if text.trim_start().starts_with('{') {
        return from_json(text, file).map(|node| (node, Language::Json));
    }
    let toml_error = match from_toml(text, file) {
        Ok(node) => return Ok((node, Language::Toml)),
        Err(error) => error,
    };
    match from_yaml(text, file, 0) {
        Ok(node) if matches!(node.value, Value::Table(_)) => Ok((node, Language::Yaml)),
        // Almost any text is a YAML scalar, so report the TOML error.
        Ok(_) => Err(toml_error),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
