//! Values of YAML, TOML or JSON texts, with positions.

use std::fmt;

/// Line and column from 1; line 0 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The position of the value.
    pub at: Position,
    /// The value itself.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(String),
    /// A TOML date or time, as text.
    Date(String),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Vec<Field>),
}

/// A key of a table with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: String,
    /// The position of the key.
    pub at: Position,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The field with a key.
    pub fn field(&self, key: &str) -> Option<&Field> {
        let Value::Table(fields) = &self.value else {
            return None;
        };
        fields.iter().find(|field| field.key == key)
    }

    /// The field with a key, to change it.
    pub fn field_mut(&mut self, key: &str) -> Option<&mut Field> {
        let Value::Table(fields) = &mut self.value else {
            return None;
        };
        fields.iter_mut().find(|field| field.key == key)
    }
}

impl Value {
    /// The kind of the value, for messages.
    pub fn describe(&self) -> &'static str {
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

    /// The usual text of a number, a boolean or a date.
    pub fn scalar(&self) -> Option<String> {
        let written: &dyn fmt::Display = match self {
            Self::Bool(value) => value,
            Self::Integer(value) => value,
            Self::Float(value) => return Some(format!("{value:?}")),
            Self::Date(value) => value,
            Self::Null | Self::String(_) | Self::List(_) | Self::Table(_) => return None,
        };
        Some(written.to_string())
    }
}
