//! Parses YAML to a tree with positions.
//!
//! Invariant: limits apply during parsing, so that aliases and nesting cannot make a small
//! text large.

use crate::tree::{Field, Node, Position, Value};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Budget, Options, Spanned};
use std::fmt;

/// The limits for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of values, including those of aliases.
    pub nodes: usize,
    /// Maximum levels of nesting.
    pub depth: usize,
    /// Maximum number of anchors, and of their uses.
    pub aliases: usize,
}

/// Why a text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The position, if known.
    pub at: Option<Position>,
    /// The problem, for the author of the text.
    pub message: String,
}

/// Parses a text to a tree, in which `yes`, `no`, `on` and `off` are strings. A text with only
/// comments is an empty table.
pub fn tree(text: &str, bounds: Bounds) -> Result<Node, Invalid> {
    if is_empty(text) {
        let at = Position { line: 1, column: 1 };
        let value = Value::Table(Vec::new());
        return Ok(Node { at, value });
    }
    let mut options = options(bounds);
    options.strict_booleans = true;
    parse(text, bounds, options)
}

/// Parses a text to a value of a type, which determines which values are strings.
pub fn read<T: DeserializeOwned>(text: &str, bounds: Bounds) -> Result<T, Invalid> {
    parse(text, bounds, options(bounds))
}

/// Formats a value.
pub fn write(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).expect("string keys and finite numbers are YAML")
}

fn parse<T: DeserializeOwned>(text: &str, bounds: Bounds, options: Options) -> Result<T, Invalid> {
    serde_saphyr::from_str_with_options(text, options).map_err(|e| Invalid {
        at: e.location().map(|at| Position {
            line: number(at.line()),
            column: number(at.column()),
        }),
        message: message(&e, bounds),
    })
}

fn is_empty(text: &str) -> bool {
    let empty = |line: &str| line.is_empty() || line.starts_with('#');
    text.lines().map(str::trim).all(empty)
}

fn options(bounds: Bounds) -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = bounds.nodes;
    budget.max_events = 4 * bounds.nodes;
    budget.max_depth = bounds.depth;
    budget.flow_nesting_limit = bounds.depth;
    budget.max_aliases = bounds.aliases;
    budget.max_anchors = bounds.aliases;
    budget.max_documents = 1;
    budget.max_inclusion_depth = 0;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = bounds.nodes;
    options.alias_limits.max_replay_stack_depth = bounds.depth;
    options
}

/// The parser's message without its position.
fn message(error: &serde_saphyr::Error, bounds: Bounds) -> String {
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
            "it has more than {} values, {} levels or {} aliases",
            bounds.nodes, bounds.depth, bounds.aliases
        );
    }
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    // Removes positions, and advice for programmers.
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

fn position<T>(spanned: &Spanned<T>) -> Position {
    Position {
        line: number(spanned.referenced.line()),
        column: number(spanned.referenced.column()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            at: position(&spanned),
            value: spanned.value,
        })
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
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Integer(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        // Integers above i64 do not occur in these files.
        let integer = i64::try_from(v).map(Value::Integer);
        Ok(integer.unwrap_or(Value::Float(v as f64)))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
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
        while let Some((key, node)) = map.next_entry::<Spanned<String>, Node>()? {
            let at = position(&key);
            let key = key.value;
            entries.push(Field { key, at, node });
        }
        Ok(Value::Table(entries))
    }
}
