//! The configuration as one immutable snapshot.
//!
//! Invariant: a run uses one catalogue from start to end; a reload replaces the
//! snapshot and affects no run in flight.

use crate::Error;
use crabtalk_domain::storage::Meta;
use crabtalk_domain::{AgentConfig, AgentName, ConversationKey};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Configurable limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Runs that may queue in one conversation (CONV-3).
    pub queued_runs: usize,
    /// Maximum depth of delegation (RUN-9).
    pub delegate_depth: u32,
    /// Time limit of an ask in the owner's inbox (GATE-4).
    pub ask_timeout: Duration,
    /// Bytes of one answer: text, thinking and arguments together (MODEL-9).
    pub answer_bytes: usize,
    /// Number of tool calls in one answer (MODEL-9).
    pub answer_calls: usize,
    /// Time from a request to the end of its answer (MODEL-9).
    pub answer_time: Duration,
    /// Bytes of MCP tools' schemas above which requests contain names only.
    pub tool_schema_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queued_runs: 32,
            delegate_depth: 3,
            ask_timeout: Duration::from_secs(86_400),
            answer_bytes: 2 * 1024 * 1024,
            answer_calls: 128,
            answer_time: Duration::from_secs(3_600),
            tool_schema_bytes: 32 * 1024,
        }
    }
}

/// A snapshot of the configuration for runs.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Every agent by name.
    pub agents: BTreeMap<AgentName, Arc<AgentConfig>>,
    /// Agents with an invalid configuration, with the error.
    pub refused: BTreeMap<AgentName, String>,
    /// The agent to which an empty name refers (CONV-8).
    pub default_agent: AgentName,
    /// Senders with the owner's authority.
    pub owners: Vec<String>,
    /// The user's home directory, the last default for a working directory.
    pub user_home: Option<PathBuf>,
    /// Whether the base tools include the memory tools (GATE-1).
    pub memory_enabled: bool,
    /// Whether a run that a crash interrupted is resumed (STORE-7).
    pub resume: bool,
    /// Whether the runtime announces a coming message to the model (MODEL-8).
    pub prewarm: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Catalog {
    /// Creates a catalogue with one agent, which is the default agent.
    pub fn of(agent: AgentConfig) -> Self {
        Self {
            default_agent: agent.name.clone(),
            agents: BTreeMap::from([(agent.name.clone(), Arc::new(agent))]),
            refused: BTreeMap::new(),
            owners: ["user", "user/*", "user/*/*"].map(str::to_owned).into(),
            user_home: None,
            memory_enabled: false,
            resume: false,
            prewarm: true,
            limits: Limits::default(),
        }
    }

    /// The default working directory of a conversation's runs (CONV-6): the conversation's
    /// folder, else its agent's, else that of the client that created it, else the user's
    /// home.
    pub fn cwd(&self, key: &ConversationKey, meta: &Meta) -> PathBuf {
        let stored = (!meta.cwd.is_empty()).then(|| PathBuf::from(&meta.cwd));
        let of_agent = || self.agents.get(&key.agent)?.cwd.clone();
        let own = stored.clone().filter(|_| meta.own_cwd);
        own.or_else(of_agent)
            .or(stored)
            .or_else(|| self.user_home.clone())
            .unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Finds an agent; an empty name is the default one.
    pub fn agent(&self, name: &str) -> Result<&Arc<AgentConfig>, Error> {
        let name = if name.is_empty() {
            self.default_agent.as_str()
        } else {
            name
        };
        let asked = AgentName::new(name).ok();
        let found = asked.as_ref().and_then(|name| self.agents.get(name));
        if found.is_none()
            && let Some((name, why)) = asked.and_then(|name| self.refused.get_key_value(&name))
        {
            return Err(Error::AgentRefused {
                name: name.clone(),
                why: why.clone(),
            });
        }
        found.ok_or_else(|| Error::UnknownAgent {
            name: name.chars().take(80).collect(),
            known: self
                .agents
                .keys()
                .map(AgentName::as_str)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}
