//! A serde deserialiser over a tree of values with positions.
//!
//! Invariants: an error has the position and the full name of its key; an unknown key
//! becomes a warning with the most similar known key.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values of all other types are the same error"
)]

use crate::error::{Diagnostic, Error, UnknownKey, Warning, nearest};
use crate::tree::{Field, Node, Position, Value};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::cell::RefCell;
use std::fmt;
use std::path::Path;

/// Reads a tree as a value of a type.
pub(crate) fn read<T: DeserializeOwned>(
    tree: &Node,
    file: &Path,
) -> Result<(T, Vec<Warning>), Error> {
    let warnings = RefCell::default();
    let reader = Reader {
        node: tree,
        name: String::new(),
        key_at: tree.at,
        siblings: &[],
        file,
        warnings: &warnings,
    };
    let value = T::deserialize(reader).map_err(|failure| {
        let failure = failure.locate(tree.at, "");
        let message = match failure.name.as_str() {
            "" => failure.message,
            name => format!("{name}: {}", failure.message),
        };
        let at = failure.at.unwrap_or_default();
        Error::Invalid(Diagnostic::new(file, at, message))
    })?;
    Ok((value, warnings.into_inner()))
}

/// The full name of a key, for messages.
pub(crate) fn join(table: &str, key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match table {
        "" => key.to_owned(),
        table if is_bare => format!("{table}.{key}"),
        table => format!("{table}.{key:?}"),
    }
}

/// `; did you mean KEY?`, if a key is similar.
fn hint<'a>(word: &str, candidates: &[&'a str]) -> (Option<&'a str>, String) {
    let near = nearest(word, candidates.iter().copied());
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    (near, hint)
}

/// An error that gets its position from an enclosing value.
#[derive(Debug)]
struct Failure {
    at: Option<Position>,
    name: String,
    message: String,
}

impl Failure {
    /// Adds position and name, unless an inner value has already.
    fn locate(mut self, at: Position, name: &str) -> Self {
        if self.at.is_none() {
            self.at = Some(at);
            self.name = match self.name.as_str() {
                "" => name.to_owned(),
                field => join(name, field),
            };
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            at: None,
            name: String::new(),
            message: message.to_string(),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {found}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            name: field.to_owned(),
            ..Self::custom("missing: this key is required")
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown key{}", hint(field, expected).1))
    }

    fn unknown_variant(word: &str, expected: &'static [&'static str]) -> Self {
        let near = nearest(word, expected.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        let words = expected.join(", ");
        Self::custom(format_args!(
            "expected one of {words}, found {word:?}{hint}"
        ))
    }
}

/// One value of the tree.
struct Reader<'a> {
    node: &'a Node,
    name: String,
    key_at: Position,
    /// The keys of the enclosing table.
    siblings: &'static [&'static str],
    file: &'a Path,
    warnings: &'a RefCell<Vec<Warning>>,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, expected: &str) -> Result<T, Failure> {
        let found = self.node.value.describe();
        Err(de::Error::custom(format_args!(
            "expected {expected}, found {found}"
        )))
    }

    fn whole(&self, max: u64) -> Result<u64, Failure> {
        let expected = match max {
            u64::MAX => "a whole number of at least 0".to_owned(),
            max => format!("a whole number from 0 to {max}"),
        };
        let Value::Integer(value) = self.node.value else {
            return self.wrong(&expected);
        };
        match u64::try_from(value) {
            Ok(value) if value <= max => Ok(value),
            _ => Err(de::Error::custom(format_args!(
                "expected {expected}, found {value}"
            ))),
        }
    }

    fn text(&self) -> Result<&'a str, Failure> {
        match &self.node.value {
            Value::String(text) => Ok(text),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Date(_) => {
                self.wrong("a string (put it in quotes)")
            }
            Value::Null | Value::List(_) | Value::Table(_) => self.wrong("a string"),
        }
    }

    fn below(&self, node: &'a Node, name: String, key_at: Position) -> Self {
        Self {
            node,
            name,
            key_at,
            siblings: &[],
            file: self.file,
            warnings: self.warnings,
        }
    }

    fn fields(self, keys: &'static [&'static str]) -> Result<Fields<'a>, Failure> {
        let fields: &[Field] = match &self.node.value {
            Value::Table(fields) => fields,
            // `key:` without a value is an empty table in YAML.
            Value::Null => &[],
            _ => return self.wrong("a table of keys"),
        };
        Ok(Fields {
            rest: fields.iter(),
            current: None,
            table: self,
            keys,
        })
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) | Value::Date(text) => visitor.visit_borrowed_str(text),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.node.value {
            Value::Bool(value) => visitor.visit_bool(value),
            _ => self.wrong("a boolean (true or false)"),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u64(self.whole(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u64(self.whole(u64::MAX)?)
    }

    /// Every decimal number of the configuration is an amount of money.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let expected = "a number of at least 0";
        let amount = match self.node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            _ => return self.wrong(expected),
        };
        if amount >= 0.0 && amount.is_finite() {
            return visitor.visit_f64(amount);
        }
        Err(de::Error::custom(format_args!(
            "expected {expected}, found {amount}"
        )))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let Value::List(items) = &self.node.value else {
            return self.wrong("a list");
        };
        visitor.visit_seq(Items {
            rest: items.iter().enumerate(),
            list: self,
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_map(self.fields(&[])?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_map(self.fields(keys)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match &self.node.value {
            Value::String(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            _ => self.wrong(&format!("one of {}", words.join(", "))),
        }
    }

    /// A value with an unknown key.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let (table, key) = match self.name.rsplit_once('.') {
            Some((table, key)) => (table, key),
            None => ("", self.name.as_str()),
        };
        let (near, hint) = hint(key, self.siblings);
        let message = format!("{}: unknown key, ignored{hint}", self.name);
        let mut warning = Diagnostic::new(self.file, self.key_at, message);
        warning.unknown = Some(UnknownKey {
            nearest: near.map(|key| join(table, key)),
            name: self.name,
        });
        self.warnings.borrow_mut().push(warning);
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// The keys of a table. A key without a value is absent.
struct Fields<'a> {
    rest: std::slice::Iter<'a, Field>,
    current: Option<&'a Field>,
    table: Reader<'a>,
    keys: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Failure> {
        let Some(field) = self.rest.find(|field| field.node.value != Value::Null) else {
            return Ok(None);
        };
        self.current = Some(field);
        let key: StrDeserializer<'_, Failure> = field.key.as_str().into_deserializer();
        let key = seed.deserialize(key);
        key.map(Some)
            .map_err(|failure| failure.locate(field.at, &join(&self.table.name, &field.key)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let field = self.current.take().expect("a key precedes its value");
        let name = join(&self.table.name, &field.key);
        let mut value = self.table.below(&field.node, name.clone(), field.at);
        value.siblings = self.keys;
        seed.deserialize(value)
            .map_err(|failure| failure.locate(field.node.at, &name))
    }
}

/// The items of a list.
struct Items<'a> {
    rest: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    list: Reader<'a>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Failure> {
        let Some((i, node)) = self.rest.next() else {
            return Ok(None);
        };
        let name = format!("{}[{i}]", self.list.name);
        let item = self.list.below(node, name.clone(), node.at);
        let item = seed.deserialize(item);
        item.map(Some)
            .map_err(|failure| failure.locate(node.at, &name))
    }
}
