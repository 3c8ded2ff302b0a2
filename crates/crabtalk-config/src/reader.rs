//! Takes typed values out of a tree, and says what would be right where one is
//! wrong.
//!
//! Invariant: a key that nobody asked for is a warning with the nearest key.

use crate::error::{Diagnostic, Error, UnknownKey, Warning, nearest};
use crate::tree::{Field, Node, Position, Value};
use crabtalk_domain::Mode;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// One text on its way to typed values.
pub(crate) struct TextFile {
    file: PathBuf,
    warnings: RefCell<Vec<Warning>>,
}

impl TextFile {
    pub(crate) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            warnings: RefCell::default(),
        }
    }

    pub(crate) fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error::Invalid(self.diagnostic(at, message))
    }

    /// Warns of a key that nobody knows.
    pub(crate) fn warn_of_key(
        &self,
        at: Position,
        message: String,
        name: String,
        nearest: Option<String>,
    ) {
        let mut warning = self.diagnostic(at, message);
        warning.unknown = Some(UnknownKey { name, nearest });
        self.warnings.borrow_mut().push(warning);
    }

    pub(crate) fn warn(&self, at: Position, message: String) {
        let warning = self.diagnostic(at, message);
        self.warnings.borrow_mut().push(warning);
    }

    pub(crate) fn into_warnings(self) -> Vec<Warning> {
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|w| (w.line, w.column));
        warnings
    }

    fn diagnostic(&self, at: Position, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.file, at, message)
    }
}

/// A table whose keys are taken one by one.
pub(crate) struct Section<'a> {
    source: &'a TextFile,
    path: String,
    pub(crate) at: Position,
    entries: &'a [Field],
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        source: &'a TextFile,
        path: impl Into<String>,
        node: &'a Node,
    ) -> Result<Self, Error> {
        let path = path.into();
        let entries: &[Field] = match &node.value {
            Value::Table(entries) => entries,
            // `key:` with nothing behind it is an empty table in YAML.
            Value::Null => &[],
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Date(_)
            | Value::List(_) => {
                let what = if path.is_empty() {
                    String::new()
                } else {
                    format!("{path}: ")
                };
                let found = node.value.describe();
                let message = format!("{what}expected a table of keys, found {found}");
                return Err(source.error(node.at, message));
            }
        };
        Ok(Self {
            source,
            path,
            at: node.at,
            entries,
            known: Vec::new(),
        })
    }

    pub(crate) fn source(&self) -> &'a TextFile {
        self.source
    }

    /// The table's own full name; empty at the top.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The full name of a key, for messages.
    pub(crate) fn name(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path if is_bare(key) => format!("{path}.{key}"),
            path => format!("{path}.{key:?}"),
        }
    }

    /// Every entry, for tables with keys of the user's choice.
    pub(crate) fn entries(&self) -> &'a [Field] {
        self.entries
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'a Field> {
        self.known.push(key);
        self.entries
            .iter()
            .find(|e| e.key == key && e.node.value != Value::Null)
    }

    pub(crate) fn fail<T>(&self, at: Position, key: &str, message: &str) -> Result<T, Error> {
        Err(self
            .source
            .error(at, format!("{}: {message}", self.name(key))))
    }

    fn wrong<T>(&self, key: &str, node: &Node, expected: &str) -> Result<T, Error> {
        let found = node.value.describe();
        self.fail(node.at, key, &format!("expected {expected}, found {found}"))
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        let Value::Bool(value) = entry.node.value else {
            return self.wrong(key, &entry.node, "a boolean (true or false)");
        };
        Ok(Some(value))
    }

    pub(crate) fn warn(&self, at: Position, message: String) {
        self.source.warn(at, message);
    }

    /// One of `modes`. The key `sandbox` of earlier versions is accepted and
    /// has no effect: commands are always sandboxed.
    pub(crate) fn mode(
        &mut self,
        key: &'static str,
        modes: &[Mode],
    ) -> Result<Option<Mode>, Error> {
        if let Some(entry) = self.take("sandbox") {
            let name = self.name("sandbox");
            let message = format!(
                "{name} has no effect: commands always run in the sandbox; use `mode` to say what asks"
            );
            self.source.warn(entry.at, message);
        }
        let modes: Vec<(&'static str, Mode)> =
            modes.iter().map(|mode| (mode.as_str(), *mode)).collect();
        self.choice(key, &modes)
    }

    pub(crate) fn string(&mut self, key: &'static str) -> Result<Option<String>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        self.text(key, &entry.node).map(Some)
    }

    /// The text of a node that belongs to `key`.
    pub(crate) fn text(&self, key: &str, node: &Node) -> Result<String, Error> {
        match &node.value {
            Value::String(text) => Ok(text.clone()),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Date(_) => {
                self.wrong(key, node, "a string (put it in quotes)")
            }
            Value::Null | Value::List(_) | Value::Table(_) => self.wrong(key, node, "a string"),
        }
    }

    /// A whole number within `min..=max`.
    pub(crate) fn whole(
        &mut self,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        let expected = if max >= i64::MAX as u64 {
            format!("a whole number of at least {min}")
        } else {
            format!("a whole number from {min} to {max}")
        };
        let Value::Integer(value) = entry.node.value else {
            return self.wrong(key, &entry.node, &expected);
        };
        match u64::try_from(value) {
            Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
            _ => self.fail(
                entry.node.at,
                key,
                &format!("expected {expected}, found {value}"),
            ),
        }
    }

    /// Like [`Self::whole`], up to `u32::MAX`.
    pub(crate) fn count(&mut self, key: &'static str, min: u32) -> Result<Option<u32>, Error> {
        let value = self.whole(key, min.into(), u32::MAX.into())?;
        Ok(value.map(|value| u32::try_from(value).expect("within the range that was checked")))
    }

    /// A number that is not negative, such as an amount of money.
    pub(crate) fn amount(&mut self, key: &'static str) -> Result<Option<f64>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        let expected = "a number of at least 0";
        let amount = match entry.node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => return self.wrong(key, &entry.node, expected),
        };
        if amount >= 0.0 && amount.is_finite() {
            return Ok(Some(amount));
        }
        self.fail(
            entry.node.at,
            key,
            &format!("expected {expected}, found {amount}"),
        )
    }

    /// A list of strings; a string is a list with commas in it.
    pub(crate) fn strings(&mut self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        if let Value::String(text) = &entry.node.value {
            return Ok(Some(split_commas(text)));
        }
        let Value::List(items) = &entry.node.value else {
            return self.wrong(key, &entry.node, "a list of strings");
        };
        let texts = items.iter().enumerate().map(|(i, item)| {
            if let Value::String(text) = &item.value {
                return Ok(text.clone());
            }
            let (name, found) = (self.name(key), item.value.describe());
            let message = format!("{name}[{i}]: expected a string, found {found}");
            Err(self.source.error(item.at, message))
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// A list of strings in which commas mean nothing, such as arguments.
    pub(crate) fn exact_strings(&mut self, key: &'static str) -> Result<Vec<String>, Error> {
        match self.entries.iter().find(|e| e.key == key) {
            Some(entry) if matches!(entry.node.value, Value::String(_)) => {
                self.known.push(key);
                self.wrong(
                    key,
                    &entry.node,
                    "a list of strings, as in [\"one\", \"two\"]",
                )
            }
            _ => Ok(self.strings(key)?.unwrap_or_default()),
        }
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        self.choose(key, &entry.node, choices).map(Some)
    }

    /// One of some words, from a node that belongs to `key`.
    pub(crate) fn choose<T: Copy>(
        &self,
        key: &str,
        node: &Node,
        choices: &[(&'static str, T)],
    ) -> Result<T, Error> {
        let words = choices.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        let expected = format!("one of {}", words.join(", "));
        let Value::String(text) = &node.value else {
            return self.wrong(key, node, &expected);
        };
        if let Some((_, value)) = choices.iter().find(|(word, _)| word == text) {
            return Ok(*value);
        }
        let hint = nearest(text, words)
            .map_or_else(String::new, |word| format!(" (did you mean {word}?)"));
        self.fail(
            node.at,
            key,
            &format!("expected {expected}, found {text:?}{hint}"),
        )
    }

    /// A table below this one.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, Error> {
        let Some(entry) = self.take(key) else {
            return Ok(None);
        };
        self.below(entry).map(Some)
    }

    /// A table below this one; where there is none, an empty one.
    pub(crate) fn section_or_empty(&mut self, key: &'static str) -> Result<Section<'a>, Error> {
        let empty = Section {
            source: self.source,
            path: key.to_owned(),
            at: self.at,
            entries: &[],
            known: Vec::new(),
        };
        Ok(self.section(key)?.unwrap_or(empty))
    }

    /// The table of one of [`Self::entries`].
    pub(crate) fn below(&self, entry: &'a Field) -> Result<Section<'a>, Error> {
        Section::new(self.source, self.name(&entry.key), &entry.node)
    }

    /// Refuses keys that nobody took: where a word that is misspelt would allow
    /// more than was meant.
    pub(crate) fn finish_strictly(self) -> Result<(), Error> {
        let unknown = |e: &&Field| !self.known.contains(&e.key.as_str());
        let Some(entry) = self.entries.iter().find(unknown) else {
            return Ok(());
        };
        let hint = nearest(&entry.key, self.known.iter().copied())
            .map_or_else(String::new, |key| format!("; did you mean {key}?"));
        self.fail(entry.at, &entry.key, &format!("unknown key{hint}"))
    }

    /// Warns of the keys that nobody took.
    pub(crate) fn finish(self) {
        for entry in self.entries {
            if self.known.contains(&entry.key.as_str()) {
                continue;
            }
            let near = nearest(&entry.key, self.known.iter().copied());
            let hint = near.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            let name = self.name(&entry.key);
            let said = format!("{name}: unknown key, ignored{hint}");
            let near = near.map(|key| self.name(key));
            self.source.warn_of_key(entry.at, said, name, near);
        }
    }
}

/// Whether a key needs no quotes in a dotted name.
fn is_bare(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The parts of a comma string; empty ones are dropped.
pub(crate) fn split_commas(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}
