//! YAML as a tree.
//!
//! Invariant: YAML is read with a small budget, so that aliases and nesting
//! cannot make a small file large.

use super::{Entry, Node, Position, Value, invalid};
use crate::error::Error;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;
use std::path::Path;

/// Values in a YAML text: an agent with hundreds of permission rules has a few
/// thousand, and a larger text is an attack or an accident.
const MAX_YAML_NODES: usize = 10_000;

/// Nesting of a YAML text; ours needs three levels.
const MAX_YAML_DEPTH: usize = 16;

/// Uses of anchors in a YAML text; configuration hardly needs one.
const MAX_YAML_ALIASES: usize = 64;

/// Values that aliases may stand for in all, so that they cannot multiply.
const MAX_YAML_REPLAYED: usize = 10_000;

/// Reads YAML that begins `lines_before` lines into its file.
pub(crate) fn from_yaml(text: &str, file: &Path, lines_before: usize) -> Result<Node, Error> {
    let mut node = if text
        .lines()
        .all(|line| line.trim_start().starts_with('#') || line.trim().is_empty())
    {
        Node {
            at: Position { line: 1, column: 1 },
            value: Value::Table(Vec::new()),
        }
    } else {
        serde_saphyr::from_str_with_options::<Yaml>(text, yaml_options())
            .map_err(|e| {
                let at = e.location().map_or_else(Position::default, |l| Position {
                    line: number(l.line()) + lines_before,
                    column: number(l.column()),
                });
                invalid(file, at, format!("not valid YAML: {}", yaml_message(&e)))
            })?
            .0
    };
    shift(&mut node, lines_before);
    Ok(node)
}

fn yaml_options() -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_nodes = MAX_YAML_NODES;
    budget.max_events = 4 * MAX_YAML_NODES;
    budget.max_depth = MAX_YAML_DEPTH;
    budget.flow_nesting_limit = MAX_YAML_DEPTH;
    budget.max_aliases = MAX_YAML_ALIASES;
    budget.max_anchors = MAX_YAML_ALIASES;
    budget.max_documents = 1;
    budget.max_inclusion_depth = 0;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MAX_YAML_REPLAYED;
    options.alias_limits.max_replay_stack_depth = MAX_YAML_DEPTH;
    // `yes`, `no`, `on` and `off` are words here.
    options.strict_booleans = true;
    options
}

/// The parser's message without the position, which we print ourselves.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let cut = text
        .find(" at line ")
        .or_else(|| text.find(" at position "));
    let text = cut.map_or(text, |cut| &text[..cut]);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    // Advice for the author of a program, not of a file.
    let text = text
        .split_once(", set DuplicateKeyPolicy")
        .map_or(text, |(text, _)| text);
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

fn shift(node: &mut Node, lines: usize) {
    node.at.line += lines;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| shift(item, lines)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| {
            entry.at.line += lines;
            shift(&mut entry.node, lines);
        }),
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Date(_) => {}
    }
}

/// A node as the YAML parser gives it.
struct Yaml(Node);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Inner>::deserialize(deserializer)?;
        let at = Position {
            line: number(spanned.referenced.line()),
            column: number(spanned.referenced.column()),
        };
        Ok(Self(Node {
            at,
            value: spanned.value.0,
        }))
    }
}

/// A value as the YAML parser gives it.
struct Inner(Value);

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
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
        // Above i64 nothing of ours is a whole number.
        Ok(i64::try_from(v).map_or(Value::Float(v as f64), Value::Integer))
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
        while let Some(Yaml(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, Yaml(node))) = map.next_entry::<Spanned<String>, Yaml>()? {
            let at = Position {
                line: number(key.referenced.line()),
                column: number(key.referenced.column()),
            };
            entries.push(Entry {
                key: key.value,
                at,
                node,
            });
        }
        Ok(Value::Table(entries))
    }
}
