//! Doubles: a server on a real socket, a person at a terminal, a buffer.

mod answers;
mod daemon;
mod person;
mod script;

pub(crate) use daemon::{At, Fake};
use person::Person;
pub(crate) use person::shows;
use script::Script;

/// Parses lines, which must all be JSON.
#[track_caller]
pub(crate) fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}")))
        .collect()
}
