//! A configured agent: persona, model, scope and permissions.

use crate::{AgentName, Mode};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Default for the steps after which a run ends with 508.
const DEFAULT_MAX_ITERATIONS: u32 = 50;

/// Default for the estimated tokens above which a history is compacted (0000).
const DEFAULT_COMPACT_THRESHOLD: u64 = 100_000;

/// The gate's verdict on a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Executes without asking.
    Allow,
    /// Executes after a person has approved it.
    Ask,
    /// Never executes.
    Deny,
}

/// One line of an agent's `permissions`: `tool: permission` or
/// `tool(pattern): permission` (GATE-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    /// Name or glob of the tool.
    pub tool: String,
    /// Pattern over the command or path; `None` matches every call.
    pub pattern: Option<String>,
    /// The permission.
    pub permission: Permission,
}

/// The scope of an agent, as glob patterns. An empty list allows everything, but empty
/// `members` allow none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Tools; if not empty, the list is exhaustive.
    pub tools: Vec<String>,
    /// Skills.
    pub skills: Vec<String>,
    /// MCP servers.
    pub mcps: Vec<String>,
    /// Agents it may delegate to.
    pub members: Vec<String>,
}

/// Limits on what an agent may spend in a day (MODEL-7).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Tokens a day; `None` is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Money a day, in the unit of the configured prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_per_day: Option<f64>,
}

/// The configuration of an agent, unchanged for the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// The agent's name, also the name of its file.
    pub name: AgentName,
    /// One line for people and for delegating agents.
    pub description: String,
    /// The system prompt.
    pub prompt: String,
    /// The model's name; empty for the node's active model.
    pub model: String,
    /// Models to try in order when `model` fails.
    pub fallback: Vec<String>,
    /// Whether to ask the model for reasoning.
    pub thinking: bool,
    /// Number of steps after which a run ends with 508.
    pub max_iterations: u32,
    /// Estimated tokens above which the history is compacted; `None` is off.
    pub compact_threshold: Option<u64>,
    /// Replaces the built-in compaction prompt.
    pub compact_prompt: Option<String>,
    /// The tools, skills, servers and agents that it can use.
    pub scope: Scope,
    /// Its permission rules.
    pub permissions: Vec<PermissionRule>,
    /// The mode of its runs; `None` for the default of the run's folder.
    pub mode: Option<Mode>,
    /// The default working directory of its conversations.
    pub cwd: Option<PathBuf>,
    /// Its daily limits.
    pub budget: Budget,
    /// Whether the agent answers as a guest: it gets no tools, and prompt sections about
    /// tools, skills or memory are omitted (RUN-2). Set by the runtime for one turn, never
    /// by the configuration.
    pub as_guest: bool,
}

impl AgentConfig {
    /// Creates an agent with a name and a prompt, and defaults for the rest.
    pub fn new(name: AgentName, prompt: impl Into<String>) -> Self {
        Self {
            name,
            description: String::new(),
            prompt: prompt.into(),
            model: String::new(),
            fallback: Vec::new(),
            thinking: false,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            compact_threshold: Some(DEFAULT_COMPACT_THRESHOLD),
            compact_prompt: None,
            scope: Scope::default(),
            permissions: Vec::new(),
            mode: None,
            cwd: None,
            budget: Budget::default(),
            as_guest: false,
        }
    }
}

/// Whether `name` matches a pattern: `*` matches any characters, `?` one character.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    wildmatch::WildMatch::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_names() {
        for (pattern, name, want) in [
            ("*", "", true),
            ("check-*", "check-feeds", true),
            ("check-*", "recheck-feeds", false),
            ("*-feeds", "check-feeds", true),
            ("a*b*c", "a1b2b3c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("read", "read", true),
            ("read", "reader", false),
        ] {
            assert_eq!(glob_matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
