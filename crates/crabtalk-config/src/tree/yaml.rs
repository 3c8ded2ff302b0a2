//! YAML as a tree.

use super::{Entry, Node, Position, Value, invalid};
use crate::error::Error;
use crabtalk_files::yaml::{self, Bounds, Scalar};
use std::path::Path;

/// An agent with hundreds of permission rules has a few thousand values, and a
/// larger text is an attack or an accident. Ours needs three levels, and
/// hardly an alias.
const BOUNDS: Bounds = Bounds {
    nodes: 10_000,
    depth: 16,
    aliases: 64,
};

/// Reads YAML that begins `lines_before` lines into its file.
pub(crate) fn from_yaml(text: &str, file: &Path, lines_before: usize) -> Result<Node, Error> {
    let in_file = |at: yaml::Position| Position {
        line: at.line + lines_before,
        column: at.column,
    };
    yaml::tree(text, BOUNDS)
        .map(|node| node_of(node, &in_file))
        .map_err(|e| {
            let at = e.at.map_or_else(Position::default, in_file);
            invalid(file, at, format!("not valid YAML: {}", e.message))
        })
}

fn node_of(node: yaml::Node, in_file: &impl Fn(yaml::Position) -> Position) -> Node {
    let value = match node.value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Text(text) => Value::String(text),
        yaml::Value::Scalar(Scalar::Bool(flag)) => Value::Bool(flag),
        yaml::Value::Scalar(Scalar::Integer(number)) => Value::Integer(number),
        yaml::Value::Scalar(Scalar::Float(number)) => Value::Float(number),
        yaml::Value::List(items) => {
            let items = items.into_iter().map(|item| node_of(item, in_file));
            Value::List(items.collect())
        }
        yaml::Value::Table(entries) => {
            let entries = entries.into_iter().map(|entry| Entry {
                key: entry.key,
                at: in_file(entry.at),
                node: node_of(entry.node, in_file),
            });
            Value::Table(entries.collect())
        }
    };
    Node {
        at: in_file(node.at),
        value,
    }
}
