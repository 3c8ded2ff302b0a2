//! TOML, YAML and JSON as one tree of values with positions.

mod toml;
mod yaml;

pub(crate) use toml::from_toml;
pub(crate) use yaml::from_yaml;

use crate::error::{Diagnostic, Error};
use std::path::Path;

/// Line and column from 1; line 0 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Position,
    pub(crate) node: Node,
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    /// The value without positions.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(value) | Value::Date(value) => value.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), e.node.to_json()))
                    .collect(),
            ),
        }
    }
}

fn invalid(file: &Path, at: Position, message: String) -> Error {
    Error::Invalid(Diagnostic {
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        message,
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
                .map(|(key, value)| Entry {
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

/// What language a text of a protocol message is in.
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
        // Almost any text is a YAML scalar: it was meant as TOML.
        Ok(_) => Err(toml_error),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
