//! The extension point of the run loop (HOOK-1, 0075).

use crate::tool::ToolProvider;
use crate::{AgentConfig, AgentEvent, AskQuestion, BoxFuture, ConversationKey, Message, Origin};
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

/// Why a hook turned a message away, before anything of it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of the codes of WIRE-3.
    pub code: u32,
    /// What happened, to what, and what to do.
    pub message: String,
}

/// The run that a hook is called for.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    /// Its conversation.
    pub key: &'a ConversationKey,
    /// Where it comes from.
    pub origin: &'a Origin,
    /// The agent that speaks: the conversation's own, or a guest.
    pub agent: &'a AgentConfig,
    /// Where it works.
    pub cwd: &'a Path,
    /// Its number.
    pub run: u64,
    /// Whether it acts for an owner who can be asked.
    pub for_owner: bool,
    /// Whether parts of the conversation are archived.
    pub has_archives: bool,
}

/// Lets a hook ask the people behind a run.
pub trait People: Send + Sync {
    /// The answer, or `None` where no person can be asked. Dropping the future
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
    /// Adds a provider. Of two tools by one name the earlier counts.
    pub fn register(&mut self, provider: Arc<dyn ToolProvider>) {
        self.providers.push(provider);
    }

    /// The providers in order of registration.
    pub fn into_providers(self) -> Vec<Arc<dyn ToolProvider>> {
        self.providers
    }
}

/// Called at the turning points of an agent's life. Every method has a
/// default that does nothing, and `()` implements the trait.
pub trait Hook: Send + Sync {
    /// Composes an agent, for instance its prompt, from what is configured at that
    /// moment: once for each of its runs, before the message is preprocessed, and once for each summary that is asked for beside a run. So a change of
    /// what it adds reaches the next run, and nothing accumulates. In a guest's turn
    /// the conversation's own agent is composed first, then the guest, with
    /// [`AgentConfig::as_guest`] set.
    fn on_build_agent<'a>(&'a self, agent: AgentConfig) -> BoxFuture<'a, AgentConfig> {
        Box::pin(ready(agent))
    }

    /// Brings tools, beside those that the runtime was made with. Called once,
    /// before the first run. Calls of them pass the same gate as all others.
    fn on_register_tools<'a>(&'a self, _tools: &'a mut ToolRegistry) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Rewrites a user message before it enters the history, for instance a
    /// slash command.
    fn preprocess<'a>(
        &'a self,
        _run: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(ready(Ok(content)))
    }

    /// Gives context for one run; the runtime marks it auto-injected (RUN-3).
    fn on_before_run<'a>(
        &'a self,
        _run: RunContext<'a>,
        _history: &'a [Arc<Message>],
        _people: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(ready(Vec::new()))
    }

    /// Sees every event of every run. Must not block.
    fn on_event(&self, _key: &ConversationKey, _event: &AgentEvent) {}
}

impl Hook for () {}
