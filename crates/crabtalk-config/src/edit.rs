//! Edits `config.toml`, keeping comments (OPS-4).
//!
//! Invariants: an invalid file is never overwritten; a file that changed since it was read
//! is a conflict; an invalid result is not saved; a mask keeps the secret.

use crate::config::Config;
use crate::error::Diagnostic;
use crate::file::{read_limited, write_atomic};
use crate::secret::MASK;
use crate::tree;
use crate::{Env, Error, Warning};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Largest configuration file, as for reading.
const MAX_BYTES: u64 = 1024 * 1024;

/// A configuration file that is being edited.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    /// The text when the file was read; `None` if it did not exist.
    before: Option<String>,
    document: DocumentMut,
}

impl ConfigFile {
    /// Reads the file. A missing file is empty.
    ///
    /// # Errors
    /// The text is not TOML.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let before = read_limited(path, MAX_BYTES)?;
        let text = before.as_deref().unwrap_or_default();
        tree::from_toml(text, path)?;
        let document = text.parse().expect("it was parsed a line above");
        Ok(Self {
            path: path.to_owned(),
            before,
            document,
        })
    }

    /// Sets the value at a path of keys, such as `["provider", "x"]`. A table replaces the
    /// existing one key by key, so that comments stay; null removes a key.
    ///
    /// # Errors
    /// A mask without an existing secret, or a path through a value that is not a table.
    pub fn set(&mut self, path: &[&str], value: &Json) -> Result<(), Error> {
        let (last, parents) = path.split_last().expect("a path has at least one key");
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (i, key) in parents.iter().enumerate() {
            let item = table.entry(key).or_insert_with(|| {
                let mut table = Table::new();
                // `[provider]` is not required for `[provider.x]`.
                table.set_implicit(true);
                Item::Table(table)
            });
            table = item.as_table_like_mut().ok_or_else(|| {
                Error::BadEdit(format!("{} is not a table", path[..=i].join(".")))
            })?;
        }
        put(table, last, value, &path.join("."), true)
    }

    /// Removes the value at a path; returns whether there was one.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let (last, parents) = path.split_last().expect("a path has at least one key");
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for key in parents {
            let Some(next) = table.get_mut(key).and_then(Item::as_table_like_mut) else {
                return false;
            };
            table = next;
        }
        table.remove(last).is_some()
    }

    /// The text to save.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Checks the result and replaces the file; returns the new configuration.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the file changed since it was read, and any error of the resulting
    /// configuration.
    pub fn save(&self, env: &Env<'_>) -> Result<(Config, Vec<Warning>), Error> {
        let text = self.text();
        let parsed = Config::parse(&text, &self.path, env)?;
        if read_limited(&self.path, MAX_BYTES)? != self.before {
            return Err(Error::Conflict(self.path.clone()));
        }
        write_atomic(&self.path, &text)?;
        Ok(parsed)
    }
}

/// Parses a section of a protocol message, such as `SetProviderMsg.config`: JSON if it begins
/// with `{`, else TOML.
pub fn parse_section(text: &str) -> Result<Json, Error> {
    let file = Path::new("config");
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|e| {
            let message = format!("not valid JSON: {e}");
            Error::Invalid(Diagnostic::of_whole(file, message))
        });
    }
    Ok(tree::reader::read(&tree::from_toml(text, file)?, file)?.0)
}

/// Creates a configuration text with a single value at a path of keys.
///
/// # Errors
/// Like [`ConfigFile::set`].
pub fn section_text(path: &[&str], value: &Json) -> Result<String, Error> {
    let mut file = ConfigFile {
        path: PathBuf::new(),
        before: None,
        document: DocumentMut::new(),
    };
    file.set(path, value)?;
    Ok(file.text())
}

/// Sets the value of a key. With `block`, a new table gets a header.
fn put(
    table: &mut dyn TableLike,
    key: &str,
    value: &Json,
    path: &str,
    block: bool,
) -> Result<(), Error> {
    match value {
        Json::Null => {
            table.remove(key);
        }
        Json::Object(map) => {
            if table.get(key).is_none_or(|item| !item.is_table_like()) {
                let fresh = if block {
                    Item::Table(Table::new())
                } else {
                    Item::Value(Value::InlineTable(InlineTable::new()))
                };
                table.insert(key, fresh);
            }
            let item = table.get_mut(key).expect("inserted a line above");
            if let Some(table) = item.as_table_mut() {
                table.set_implicit(false);
            }
            let inner = item
                .as_table_like_mut()
                .expect("a table was there or inserted");
            let gone = inner.iter().map(|(key, _)| key.to_owned());
            for key in gone
                .filter(|key| !map.contains_key(key))
                .collect::<Vec<_>>()
            {
                inner.remove(&key);
            }
            for (key, value) in map {
                // Tables below a section are short, such as headers.
                put(inner, key, value, &format!("{path}.{key}"), false)?;
            }
        }
        Json::String(text) if text == MASK => {
            if table.get(key).is_none() {
                return Err(Error::BadEdit(format!(
                    "{path}: {MASK} keeps the present secret, but none is set: send the secret itself"
                )));
            }
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            put_value(table, key, to_value(value, path)?);
        }
    }
    Ok(())
}

/// Replaces a value and keeps the indentation and comments around it.
fn put_value(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        _ => {
            table.insert(key, Item::Value(value));
        }
    }
}

fn to_value(json: &Json, path: &str) -> Result<Value, Error> {
    Ok(match json {
        Json::Null => {
            return Err(Error::BadEdit(format!(
                "{path}: null is not allowed in a list"
            )));
        }
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number
                .as_f64()
                .ok_or_else(|| Error::BadEdit(format!("{path}: {number} is too large")))?
                .into(),
        },
        Json::String(text) if text == MASK => {
            return Err(Error::BadEdit(format!(
                "{path}: a list cannot keep a secret in it"
            )));
        }
        Json::String(text) => text.into(),
        Json::Array(items) => {
            let items = items.iter().map(|item| to_value(item, path));
            Value::Array(items.collect::<Result<Array, _>>()?)
        }
        Json::Object(map) => {
            let mut table = InlineTable::new();
            for (key, item) in map.iter().filter(|(_, item)| !item.is_null()) {
                table.insert(key, to_value(item, path)?);
            }
            Value::InlineTable(table)
        }
    })
}

#[cfg(test)]
mod tests;
