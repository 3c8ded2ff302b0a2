//! Frontmatter as a list of fields with their lines.
//!
//! Invariant: YAML is read with a small budget, so that aliases and nesting
//! cannot make a small text large.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Budget, Options, Spanned};
use std::fmt;

/// Values in a frontmatter: six fields and some metadata need a few dozen.
const MAX_NODES: usize = 2_000;

/// Nesting; metadata has two levels, other agents' extensions five or so.
const MAX_DEPTH: usize = 16;

/// Uses of anchors, which a frontmatter hardly needs at all.
const MAX_ALIASES: usize = 16;

/// A value of the frontmatter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing.
    Null,
    /// Text that is text.
    Text(String),
    /// A number or a boolean, as text.
    Scalar(String),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Vec<(String, Value)>),
}

/// A field at the top.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    /// From 1, within the frontmatter.
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// Why it is not YAML that we take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Invalid {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Reads a frontmatter.
pub(crate) fn fields(text: &str) -> Result<Vec<Field>, Invalid> {
    let empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(empty) {
        return Ok(Vec::new());
    }
    serde_saphyr::from_str_with_options::<Fields>(text, options())
        .map(|fields| fields.0)
        .map_err(|e| Invalid {
            line: e.location().map_or(1, |l| number(l.line())),
            message: message(&e),
        })
}

fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = MAX_NODES;
    budget.max_events = 4 * MAX_NODES;
    budget.max_depth = MAX_DEPTH;
    budget.flow_nesting_limit = MAX_DEPTH;
    budget.max_aliases = MAX_ALIASES;
    budget.max_anchors = MAX_ALIASES;
    budget.max_documents = 1;
    budget.max_inclusion_depth = 0;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MAX_NODES;
    options.alias_limits.max_replay_stack_depth = MAX_DEPTH;
    // `yes`, `no`, `on` and `off` are words here.
    options.strict_booleans = true;
    options
}

/// The parser's message without the position, which the finding carries.
fn message(error: &serde_saphyr::Error) -> String {
    let error = error.without_snippet();
    let too_much = matches!(
        error,
        serde_saphyr::Error::Budget { .. }
            | serde_saphyr::Error::AliasReplayLimitExceeded { .. }
            | serde_saphyr::Error::AliasExpansionLimitExceeded { .. }
            | serde_saphyr::Error::AliasReplayStackDepthExceeded { .. }
    );
    if too_much {
        return format!(
            "it holds or stands for more than {MAX_NODES} values, {MAX_DEPTH} levels or \
             {MAX_ALIASES} aliases"
        );
    }
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    // Positions, and advice for the author of a program, not of a file.
    let cut = [" at line ", " at position ", ", set DuplicateKeyPolicy"]
        .iter()
        .filter_map(|tail| text.find(tail))
        .min();
    let text = cut.map_or(text, |cut| &text[..cut]);
    match text
        .strip_prefix("line ")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, message)) => message.to_owned(),
        None => text.to_owned(),
    }
}

fn number(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

struct Fields(Vec<Field>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`key: value` lines")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Value>()? {
            fields.push(Field {
                line: number(key.referenced.line()),
                key: key.value,
                value,
            });
        }
        Ok(Fields(fields))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Scalar(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Scalar(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Scalar(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Scalar(format!("{v:?}")))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Text(v.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry::<String, Value>()? {
            entries.push(entry);
        }
        Ok(Value::Table(entries))
    }
}
