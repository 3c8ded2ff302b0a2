//! Parses TOML and YAML to one tree of values with positions.

pub(crate) mod reader;
mod toml;

pub(crate) use crabtalk_files::tree::{Field, Node, Position, Value};
pub(crate) use toml::from_toml;

use crate::error::{Diagnostic, Error};
use crabtalk_files::yaml::{self, Bounds};
use std::path::Path;

/// Limits: an agent with hundreds of rules has a few thousand values and three levels.
const YAML: Bounds = Bounds {
    nodes: 10_000,
    depth: 16,
    aliases: 64,
};

fn invalid(file: &Path, at: Position, message: String) -> Error {
    Error::Invalid(Diagnostic::new(file, at, message))
}

/// Parses YAML that begins after `lines_before` lines of its file.
pub(crate) fn from_yaml(text: &str, file: &Path, lines_before: usize) -> Result<Node, Error> {
    // Empty lines preserve the positions in the file.
    let text = "\n".repeat(lines_before) + text;
    yaml::tree(&text, YAML).map_err(|e| {
        let at = e.at.unwrap_or_default();
        invalid(file, at, format!("not valid YAML: {}", e.message))
    })
}

#[cfg(test)]
mod tests;
