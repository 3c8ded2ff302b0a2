//! The extension point of the run loop (HOOK-1, 0075).

use crate::tool::ToolProvider;
use crate::{AgentConfig, AgentEvent, AskQuestion, BoxFuture, ConversationKey, Message, Origin};
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

/// A hook's refusal of a message, before any of it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of the codes of WIRE-3.
    pub code: u32,
    /// The reason, with the object and the remedy.
    pub message: String,
}

/// The run for which a hook is called.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    /// The conversation of the run.
    pub key: &'a ConversationKey,
    /// The origin of the run.
    pub origin: &'a Origin,
    /// The agent that answers: the conversation's agent or a guest.
    pub agent: &'a AgentConfig,
    /// The working directory of the run.
    pub cwd: &'a Path,
    /// The run's number.
    pub run: u64,
    /// Whether it has an owner's authority and the owner can be asked.
    pub for_owner: bool,
    /// Whether parts of the conversation are archived.
    pub has_archives: bool,
}

/// Access for hooks to the people behind a run.
pub trait People: Send + Sync {
    /// Asks a question; returns `None` if no person can be asked. Dropping the future
    /// withdraws the question.
    fn ask<'a>(&'a self, question: AskQuestion) -> BoxFuture<'a, Option<String>>;

    /// Sends a notice to the readers of the run.
    fn tell(&self, _notice: String) {}
}

/// Collects the tool providers of a hook.
#[derive(Default)]
pub struct ToolRegistry {
    providers: Vec<Arc<dyn ToolProvider>>,
}

impl ToolRegistry {
    /// Adds a provider. Of two tools with the same name, the first one counts.
    pub fn register(&mut self, provider: Arc<dyn ToolProvider>) {
        self.providers.push(provider);
    }

    /// The providers in order of registration.
    pub fn into_providers(self) -> Vec<Arc<dyn ToolProvider>> {
        self.providers
    }
}

/// The extension point of the run loop. Every method has a default that does
/// nothing, and `()` implements the trait.
pub trait Hook: Send + Sync {
    /// Composes an agent, for instance its prompt, from the current configuration. Called
    /// once for each run before the message is preprocessed, and once for each compaction on
    /// demand, so that additions never accumulate. In a guest's turn the conversation's own
    /// agent is composed first, then the guest, with [`AgentConfig::as_guest`] set.
    fn on_build_agent<'a>(&'a self, agent: AgentConfig) -> BoxFuture<'a, AgentConfig> {
        Box::pin(ready(agent))
    }

    /// Registers tools beside those of the runtime. Called once, before the first run.
    /// Calls to them pass the same gate.
    fn on_register_tools<'a>(&'a self, _tools: &'a mut ToolRegistry) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Rewrites a user message before it enters the history, for instance a slash
    /// command.
    fn preprocess<'a>(
        &'a self,
        _run: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(ready(Ok(content)))
    }

    /// Returns context for one run; the runtime marks it as auto-injected (RUN-3).
    fn on_before_run<'a>(
        &'a self,
        _run: RunContext<'a>,
        _history: &'a [Arc<Message>],
        _people: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(ready(Vec::new()))
    }

    /// Receives every event of every run. Must not block.
    fn on_event(&self, _key: &ConversationKey, _event: &AgentEvent) {}
}

impl Hook for () {}
