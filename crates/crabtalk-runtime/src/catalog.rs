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

/// Bounds that configuration may move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Runs that may wait in one conversation (CONV-3).
    pub queued_runs: usize,
    /// Delegations that may lie above a run (RUN-9).
    pub delegate_depth: u32,
    /// How long an ask in the owner's inbox waits (GATE-4).
    pub ask_timeout: Duration,
    /// Bytes of one answer: text, thinking and arguments together (MODEL-9).
    pub answer_bytes: usize,
    /// Tool calls of one answer (MODEL-9).
    pub answer_calls: usize,
    /// From a request to the end of its answer (MODEL-9).
    pub answer_time: Duration,
    /// Bytes of the schemas of MCP tools above which models get names alone.
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

/// A snapshot of the configuration as far as runs need it.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Every agent by name.
    pub agents: BTreeMap<AgentName, Arc<AgentConfig>>,
    /// Agents that are configured and cannot be used, with the reason.
    pub refused: BTreeMap<AgentName, String>,
    /// The agent that an empty name means (CONV-8).
    pub default_agent: AgentName,
    /// Senders with the owner's authority.
    pub owners: Vec<String>,
    /// The user's home directory, where conversations begin without a cwd.
    pub user_home: Option<PathBuf>,
    /// Whether memory's tools belong to the base tools (GATE-1).
    pub memory_enabled: bool,
    /// Whether a run that a crash cut off is carried on (STORE-7).
    pub resume: bool,
    /// Whether a model is told of a message that is coming (MODEL-8).
    pub prewarm: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Catalog {
    /// One agent, the default one, and nothing else.
    pub fn of(agent: AgentConfig) -> Self {
        Self {
            default_agent: agent.name.clone(),
            agents: BTreeMap::from([(agent.name.clone(), Arc::new(agent))]),
            refused: BTreeMap::new(),
            owners: vec!["user".into()],
            user_home: None,
            memory_enabled: false,
            resume: false,
            prewarm: true,
            limits: Limits::default(),
        }
    }

    /// The working folder of a conversation's runs unless a message names one
    /// (CONV-6): the conversation's folder, else its agent's, else that of the
    /// client that created it, else the user's home.
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
