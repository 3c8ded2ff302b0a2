//! The settings in an agent's frontmatter.

use crate::error::{Diagnostic, Error, Warning};
use crate::tree::Node;
use crate::tree::reader::read;
use crate::values::{list, nonempty, positive};
use crabtalk_domain::{Budget, Mode, Permission, PermissionRule};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::Path;

/// An agent's settings. The daemon's defaults apply to absent keys.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    /// One line for people and for delegating agents.
    pub description: Option<String>,
    /// The model's name; if absent, the node's active model.
    #[serde(deserialize_with = "nonempty")]
    pub model: Option<String>,
    /// Models to try in order when `model` fails.
    #[serde(deserialize_with = "list")]
    pub fallback: Vec<String>,
    /// Whether to ask the model for reasoning.
    pub thinking: Option<bool>,
    /// Number of steps after which a run ends with 508.
    #[serde(deserialize_with = "positive")]
    pub max_iterations: Option<u32>,
    /// When the history is compacted.
    pub compact_threshold: Option<CompactThreshold>,
    /// Replaces the built-in compaction prompt.
    pub compact_prompt: Option<String>,
    /// Tools in scope (GATE-1).
    #[serde(deserialize_with = "list")]
    pub tools: Vec<String>,
    /// Skills in scope.
    #[serde(deserialize_with = "list")]
    pub skills: Vec<String>,
    /// MCP servers in scope.
    #[serde(deserialize_with = "list")]
    pub mcps: Vec<String>,
    /// Agents that it may delegate to.
    #[serde(deserialize_with = "list")]
    pub members: Vec<String>,
    /// Rules of the gate, in the file's order (GATE-2).
    #[serde(deserialize_with = "read_rules")]
    pub permissions: Vec<PermissionRule>,
    /// The mode of its runs; if absent, the node's.
    pub mode: Option<Mode>,
    /// The default working directory of its conversations, as written; `~` is the user's home.
    #[serde(deserialize_with = "nonempty")]
    pub cwd: Option<String>,
    /// Its daily limits.
    pub budget: Budget,
}

/// When a history is compacted (RUN-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactThreshold {
    /// Never.
    Off,
    /// Above this many estimated tokens.
    Tokens(u64),
}

impl<'de> Deserialize<'de> for CompactThreshold {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Threshold;

        impl Visitor<'_> for Threshold {
            type Value = CompactThreshold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens or none")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<CompactThreshold, E> {
                match word {
                    "none" => Ok(CompactThreshold::Off),
                    _ => Err(E::invalid_type(de::Unexpected::Str(word), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, tokens: i64) -> Result<CompactThreshold, E> {
                match u64::try_from(tokens) {
                    Ok(tokens) if tokens > 0 => Ok(CompactThreshold::Tokens(tokens)),
                    _ => Err(E::invalid_type(de::Unexpected::Signed(tokens), &self)),
                }
            }
        }

        reader.deserialize_any(Threshold)
    }
}

impl AgentSettings {
    pub(super) fn read(tree: &Node, file: &Path) -> Result<(Self, Vec<Warning>), Error> {
        let (settings, mut warnings) = read::<Self>(tree, file)?;
        let table = tree.field("permissions").map(|table| &table.node);
        for rule in &settings.permissions {
            let name = rule_name(rule);
            if rule.tool == "bash" && rule.pattern.as_deref().is_some_and(has_inner_wildcard) {
                let field = table.and_then(|table| table.field(&name));
                let at = field.map_or(tree.at, |field| field.at);
                let message = format!(
                    "{name}: a command rule matches whole words, with ` *` only at the end; this \
                     rule allows no command"
                );
                warnings.push(Diagnostic::new(file, at, message));
            }
        }
        warnings.sort_by_key(|w| (w.line, w.column));
        Ok((settings, warnings))
    }
}

fn read_rules<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<PermissionRule>, D::Error> {
    struct Rules;

    impl<'de> Visitor<'de> for Rules {
        type Value = Vec<PermissionRule>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table of rules")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut rules = Vec::new();
            while let Some((rule, permission)) = map.next_entry::<String, Permission>()? {
                let Some((tool, pattern)) = split_rule(&rule) else {
                    let example = "expected a tool or tool(pattern), as in bash(git status *)";
                    return Err(de::Error::custom(format_args!("{rule:?}: {example}")));
                };
                rules.push(PermissionRule {
                    tool: tool.to_owned(),
                    pattern: pattern.map(str::to_owned),
                    permission,
                });
            }
            Ok(rules)
        }
    }

    reader.deserialize_map(Rules)
}

/// A rule as written in the file.
fn rule_name(rule: &PermissionRule) -> String {
    match &rule.pattern {
        Some(pattern) => format!("{}({pattern})", rule.tool),
        None => rule.tool.clone(),
    }
}

/// Whether a command pattern has a wildcard before its end.
fn has_inner_wildcard(pattern: &str) -> bool {
    let words = pattern.trim().trim_end_matches('*');
    words.contains(['*', '?'])
}

/// Splits `tool` or `tool(pattern)`; the pattern may contain brackets.
fn split_rule(rule: &str) -> Option<(&str, Option<&str>)> {
    let rule = rule.trim();
    let (tool, pattern) = match rule.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (rule, None),
    };
    let is_tool = !tool.is_empty() && !tool.contains(|c: char| c.is_whitespace() || c == ')');
    is_tool.then_some((tool, pattern))
}
