//! What an agent's frontmatter says.

use crate::error::Error;
use crate::reader::Section;
use crate::tree::Value;
use crabtalk_domain::{Budget, Mode, Permission, PermissionRule};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// An agent's settings; what a file does not say is absent or empty here, and
/// the daemon's defaults apply.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AgentSettings {
    /// One line for people and for delegating agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Model name; absent means the node's active model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models to try when that one fails, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Whether to ask the model for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Steps after which a run ends with 508.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// When the history is compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_threshold: Option<CompactThreshold>,
    /// Replaces the built-in compaction prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_prompt: Option<String>,
    /// Tools in scope (GATE-1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Skills in scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// MCP servers in scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcps: Vec<String>,
    /// Agents it may delegate to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Rules of the gate, in the file's order (GATE-2).
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_map")]
    pub permissions: Vec<PermissionRule>,
    /// The mode of its runs; absent for the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Where its conversations work, as written; `~` is the user's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it may spend in a day.
    #[serde(skip_serializing_if = "is_unlimited")]
    pub budget: Budget,
}

/// When a history is compacted (RUN-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactThreshold {
    /// Never.
    Off,
    /// Above so many estimated tokens.
    Tokens(u64),
}

impl Serialize for CompactThreshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("none"),
            Self::Tokens(tokens) => serializer.serialize_u64(*tokens),
        }
    }
}

/// The words for what the gate says of a call.
const PERMISSIONS: [(&str, Permission); 3] = [
    ("allow", Permission::Allow),
    ("ask", Permission::Ask),
    ("deny", Permission::Deny),
];

fn is_unlimited(budget: &Budget) -> bool {
    *budget == Budget::default()
}

impl AgentSettings {
    pub(super) fn read(mut section: Section<'_>) -> Result<Self, Error> {
        let settings = Self {
            description: section.string("description")?,
            model: section.string("model")?.filter(|model| !model.is_empty()),
            fallback: section.strings("fallback")?.unwrap_or_default(),
            thinking: section.boolean("thinking")?,
            max_iterations: section.count("max_iterations", 1)?,
            compact_threshold: compact_threshold(&mut section)?,
            compact_prompt: section.string("compact_prompt")?,
            tools: section.strings("tools")?.unwrap_or_default(),
            skills: section.strings("skills")?.unwrap_or_default(),
            mcps: section.strings("mcps")?.unwrap_or_default(),
            members: section.strings("members")?.unwrap_or_default(),
            permissions: permissions(&mut section)?,
            mode: section.mode("mode", &Mode::ALL)?,
            cwd: section.string("cwd")?.filter(|cwd| !cwd.is_empty()),
            budget: budget(&mut section)?,
        };
        section.finish();
        Ok(settings)
    }

    /// The settings as YAML, without what they do not say.
    pub fn to_yaml(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        crabtalk_files::yaml::write(self)
    }
}

fn compact_threshold(section: &mut Section<'_>) -> Result<Option<CompactThreshold>, Error> {
    let Some(entry) = section.take("compact_threshold") else {
        return Ok(None);
    };
    let found = match &entry.node.value {
        Value::String(word) if word == "none" => return Ok(Some(CompactThreshold::Off)),
        Value::Integer(tokens) => match u64::try_from(*tokens) {
            Ok(tokens) if tokens > 0 => return Ok(Some(CompactThreshold::Tokens(tokens))),
            _ => tokens.to_string(),
        },
        Value::String(word) => format!("{word:?}"),
        Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Date(_)
        | Value::List(_)
        | Value::Table(_) => entry.node.value.describe().to_owned(),
    };
    let message = format!("expected a number of tokens or none, found {found}");
    section.fail(entry.node.at, "compact_threshold", &message)
}

fn permissions(section: &mut Section<'_>) -> Result<Vec<PermissionRule>, Error> {
    let Some(table) = section.section("permissions")? else {
        return Ok(Vec::new());
    };
    let rules = table.entries().iter().map(|entry| {
        let Some((tool, pattern)) = split_rule(&entry.key) else {
            let message = "expected a tool or tool(pattern), as in bash(git status *)";
            return table.fail(entry.at, &entry.key, message);
        };
        let permission = table.choose(&entry.key, &entry.node, &PERMISSIONS)?;
        if tool == "bash" && pattern.is_some_and(has_inner_wildcard) {
            let message = format!(
                "{}: a command rule matches whole words and ends in ` *` or nothing; this one \
                 allows no command",
                entry.key
            );
            table.warn(entry.at, message);
        }
        Ok(PermissionRule {
            tool: tool.to_owned(),
            pattern: pattern.map(str::to_owned),
            permission,
        })
    });
    rules.collect()
}

/// Whether a command pattern has a wildcard that does not end it.
fn has_inner_wildcard(pattern: &str) -> bool {
    let words = pattern.trim().trim_end_matches('*');
    words.contains(['*', '?'])
}

/// `tool` or `tool(pattern)`; the pattern may hold brackets of its own.
fn split_rule(rule: &str) -> Option<(&str, Option<&str>)> {
    let rule = rule.trim();
    let (tool, pattern) = match rule.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (rule, None),
    };
    let is_tool = !tool.is_empty() && !tool.contains(|c: char| c.is_whitespace() || c == ')');
    is_tool.then_some((tool, pattern))
}

fn budget(section: &mut Section<'_>) -> Result<Budget, Error> {
    let Some(mut table) = section.section("budget")? else {
        return Ok(Budget::default());
    };
    let budget = Budget {
        tokens_per_day: table.whole("tokens_per_day", 0, u64::MAX)?,
        money_per_day: table.amount("money_per_day")?,
    };
    table.finish();
    Ok(budget)
}

/// Rules as the map that the file has.
fn as_map<S: Serializer>(rules: &[PermissionRule], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(rules.len()))?;
    for rule in rules {
        let key = match &rule.pattern {
            Some(pattern) => format!("{}({pattern})", rule.tool),
            None => rule.tool.clone(),
        };
        map.serialize_entry(&key, &rule.permission)?;
    }
    map.end()
}
