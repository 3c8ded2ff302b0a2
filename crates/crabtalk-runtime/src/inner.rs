//! The state that all clones of a runtime share.

use crate::Error;
use crate::asks::{Answer, AskDesk, PendingAsk};
use crate::catalog::Catalog;
use crate::command::{Command, Job};
use crate::delegates::DelegateNumbers;
use crate::ends::Ends;
use crate::events::{Hub, RunLog, Subscription};
use crate::facts::Facts;
use crate::grants::HostGrants;
use crate::listen::Listener;
use crate::publisher::Publisher;
use crate::registry::{Registry, Shared};
use crate::toolbox::Toolbox;
use arc_swap::ArcSwap;
use crabtalk_domain::model::{Model, Request};
use crabtalk_domain::storage::Storage;
use crabtalk_domain::{
    AgentConfig, Ask, AskKind, AskQuestion, Clock, ConversationKey, Hook, Ledger, Origin, stamp,
};
use crabtalk_gate::Violation;
use crabtalk_gate::scope::{self, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts the task of a conversation. A function pointer, since runs start tasks too (RUN-9)
/// and this module must not depend on the task's.
pub(crate) type Start = fn(&Arc<Inner>, Arc<Shared>, mpsc::Receiver<Command>);

pub(crate) struct Inner {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) toolbox: Toolbox,
    pub(crate) hook: Arc<dyn Hook>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) ends: Ends,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) registry: Registry,
    pub(crate) hub: Arc<Hub>,
    pub(crate) asks: Arc<AskDesk>,
    pub(crate) hosts: HostGrants,
    pub(crate) shutdown: CancellationToken,
    pub(crate) violations: AtomicU64,
    pub(crate) running: AtomicU64,
    pub(crate) delegates: Arc<dyn DelegateNumbers>,
    pub(crate) tasks: TaskTracker,
    /// Starts the task of a conversation.
    pub(crate) start: Start,
}

impl Inner {
    /// The current time in the format of logs and lists.
    pub(crate) fn now(&self) -> String {
        stamp(self.clock.now())
    }

    /// Submits a job that has been checked.
    pub(crate) fn submit_job(self: &Arc<Self>, job: Job) -> Result<Subscription, Error> {
        let subscription = job.log.subscribe(0);
        let key = job.request.key.clone();
        self.command(&key, Command::Run(Box::new(job)))?;
        Ok(subscription)
    }

    /// Sends a command to the task of a conversation.
    pub(crate) fn command(
        self: &Arc<Self>,
        key: &ConversationKey,
        command: Command,
    ) -> Result<(), Error> {
        if self.shutdown.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let bound = self.catalog.load().limits.queued_runs;
        self.registry
            .submit(key, bound, command, |shared, commands| {
                (self.start)(self, shared, commands);
            })?;
        Ok(())
    }

    /// Creates the publisher for a run whose readers read `log`.
    pub(crate) fn publisher(
        &self,
        key: Arc<ConversationKey>,
        run: u64,
        speaker: &str,
        request_id: &str,
        log: Arc<RunLog>,
    ) -> Publisher {
        let told = (
            Arc::clone(&self.hook),
            Arc::clone(&self.hub),
            Arc::clone(&self.clock),
        );
        Publisher::new(told, key, run, speaker, request_id, log)
    }

    /// Shows questions in a stream and returns the answers, a JSON object; `None` once the
    /// questions are withdrawn. `delegate` is the sender of the delegate that asks.
    pub(crate) async fn ask(
        &self,
        audience: &Arc<Publisher>,
        questions: Vec<AskQuestion>,
        delegate: String,
    ) -> Option<serde_json::Value> {
        let ask = Arc::new(Ask {
            id: self.asks.new_id(),
            kind: AskKind::Question,
            questions,
            delegate,
            ..Ask::default()
        });
        let pending = PendingAsk {
            key: audience.key().clone(),
            ask,
            asked_at: self.now(),
            inbox: false,
        };
        let mut wait = self.asks.open(pending, Some(Arc::clone(audience.log())));
        let audience = Arc::clone(audience);
        wait.show(move |event| audience.publish(event));
        let Some(Answer::Questions(answers)) = wait.answer().await else {
            return None;
        };
        Some(answers)
    }

    /// Lets hooks rewrite the content of a message.
    pub(crate) async fn preprocess(&self, facts: &Facts, content: String) -> Result<String, Error> {
        let command = first_word(&content).to_owned();
        let said = self.hook.preprocess(facts.context(), content).await;
        said.map_err(|refusal| {
            // Hooks answer 403 to a slash command out of scope.
            if refusal.code == 403 {
                let violation = Violation {
                    agent: facts.agent.name.clone(),
                    sender: facts.key.sender.clone(),
                    kind: Kind::Skill,
                    name: command,
                };
                self.violation(&violation, &facts.origin);
            }
            Error::Refused(refusal)
        })
    }

    /// Composes the agent for a run: hooks first, then the description of its scope
    /// (0082).
    pub(crate) async fn build_agent(&self, agent: &AgentConfig) -> Arc<AgentConfig> {
        self.toolbox.ask_for_tools(&*self.hook).await;
        let mut agent = self.hook.on_build_agent(agent.clone()).await;
        let block = scope::prompt_block(&agent.scope);
        if !block.is_empty() && !agent.as_guest {
            if !agent.prompt.is_empty() {
                agent.prompt.push_str("\n\n");
            }
            agent.prompt.push_str(&block);
        }
        Arc::new(agent)
    }

    /// The model for a name; an empty name selects the active one.
    pub(crate) fn model_named(&self, name: &str) -> String {
        match name {
            "" => self.model.active_model(),
            name => name.to_owned(),
        }
    }

    /// Calls the model. All calls pass here, so that every answer is limited.
    pub(crate) fn listen(&self, request: Request) -> Listener {
        Listener::new(self.model.stream(request), &self.catalog.load().limits)
    }

    /// Counts and logs an attempt to use something out of scope (GATE-1).
    pub(crate) fn violation(&self, violation: &Violation, origin: &Origin) {
        self.violations.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            target: "security",
            agent = %violation.agent,
            sender = %violation.sender,
            origin = %origin,
            kind = %violation.kind,
            name = %violation.name,
            "scope violation"
        );
    }
}

/// The name of a slash command, for the log.
fn first_word(content: &str) -> &str {
    content.split_whitespace().next().unwrap_or_default()
}
