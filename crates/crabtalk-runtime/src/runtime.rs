//! The runtime's handle: submit, watch, answer, stop.

use crate::Error;
use crate::asks::{Answer, AskDesk, PendingAsk};
use crate::catalog::Catalog;
use crate::conversation::{Change, Command, Conversation, Job, apply_change};
use crate::events::{Hub, HubEvent, HubSubscription, RunLog, Subscription};
use crate::gate::Disk;
use crate::gate::{ToolRights, Violation, rights, scope};
use crate::listen::Listener;
use crate::registry::{LiveInfo, Registry};
use crate::router::{ApprovalBook, DelegateNumbers, Router};
use crate::run::{Ends, RunRequest};
use arc_swap::ArcSwap;
use crabtalk_domain::model::{Model, Request};
use crabtalk_domain::storage::{RunRecord, Storage};
use crabtalk_domain::tool::{ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentConfig, Ask, AskKind, AskOption, AskQuestion, Clock, ConversationKey, Hook, Ledger,
    Origin, Principal, RunEnds, RunOutcome, stamp,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a runtime is made of: one implementation of each port.
pub struct Parts {
    /// Language models.
    pub model: Arc<dyn Model>,
    /// Where conversations are kept.
    pub storage: Arc<dyn Storage>,
    /// Tools beside those of the runtime itself.
    pub tools: Vec<Arc<dyn ToolProvider>>,
    /// The extension point; `Arc::new(())` for none.
    pub hook: Arc<dyn Hook>,
    /// What model calls are booked in and allowed by; `Arc::new(())` for none.
    pub ledger: Arc<dyn Ledger>,
    /// Who hears of the end of every run.
    pub ends: Vec<Arc<dyn RunEnds>>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Calls that were approved for good.
    pub approvals: Arc<dyn ApprovalBook>,
    /// Follows links, for files that a command names.
    pub disk: Arc<dyn Disk>,
    /// Numbers for `delegate:<n>`, none of which is ever given twice.
    pub delegates: Arc<dyn DelegateNumbers>,
}

pub(crate) struct Inner {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) router: Router,
    pub(crate) hook: Arc<dyn Hook>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) ends: Ends,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) registry: Registry,
    pub(crate) hub: Hub,
    pub(crate) asks: Arc<AskDesk>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) violations: AtomicU64,
    pub(crate) running: AtomicU64,
    pub(crate) begun: AtomicU64,
    pub(crate) delegates: Arc<dyn DelegateNumbers>,
    tasks: TaskTracker,
}

impl Inner {
    /// Now, as logs and lists write it.
    pub(crate) fn now(&self) -> String {
        stamp(self.clock.now())
    }

    /// The tools in an agent's scope, in a stable order: the runtime's, the
    /// providers', and the hook's.
    pub(crate) fn specs(&self, agent: &AgentConfig, catalog: &Catalog) -> Arc<Vec<Arc<ToolSpec>>> {
        Arc::new(Router::specs(agent, catalog, &self.router.offered()))
    }

    /// An agent as its runs know it: composed by the hooks, told of its scope
    /// (0082).
    pub(crate) async fn build_agent(
        &self,
        hook: &dyn Hook,
        agent: &AgentConfig,
    ) -> Arc<AgentConfig> {
        self.router.ask_for_tools(&*self.hook).await;
        let mut agent = hook.on_build_agent(agent.clone()).await;
        let block = scope::prompt_block(&agent.scope);
        if !block.is_empty() && !agent.as_guest {
            if !agent.prompt.is_empty() {
                agent.prompt.push_str("\n\n");
            }
            agent.prompt.push_str(&block);
        }
        Arc::new(agent)
    }

    /// Calls the model. Nothing else calls it, so that every answer is bounded.
    pub(crate) fn listen(&self, request: Request) -> Listener {
        Listener::new(self.model.stream(request), &self.catalog.load().limits)
    }

    /// Counts and logs an attempt to reach what is out of scope (GATE-1).
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

/// What an owner is to decide apart from any run.
#[derive(Debug, Clone, Default)]
pub struct Matter {
    /// The question.
    pub question: String,
    /// The name under which it is shown, in place of a tool's.
    pub tool: String,
    /// All of what would be.
    pub detail: String,
    /// Why it is asked.
    pub reason: String,
}

/// Runs agents on conversations. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

impl Runtime {
    /// Puts the parts together. Nothing happens until somebody asks.
    pub fn new(parts: Parts, catalog: Catalog) -> Self {
        let era_ms = parts.clock.now().as_millisecond();
        Self(Arc::new(Inner {
            model: parts.model,
            storage: parts.storage,
            router: Router::new(parts.tools, parts.approvals, parts.disk),
            hook: parts.hook,
            ledger: parts.ledger,
            ends: Ends::new(parts.ends),
            clock: parts.clock,
            catalog: ArcSwap::from_pointee(catalog),
            registry: Registry::default(),
            hub: Hub::new(era_ms),
            asks: Arc::new(AskDesk::new(era_ms)),
            shutdown: CancellationToken::new(),
            violations: AtomicU64::new(0),
            running: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            delegates: parts.delegates,
            tasks: TaskTracker::new(),
        }))
    }

    /// The current snapshot of the configuration.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.load_full()
    }

    /// Swaps the configuration; runs in flight finish on the old one.
    pub fn set_catalog(&self, catalog: Catalog) {
        self.0.catalog.store(Arc::new(catalog));
    }

    /// Submits a run and reads it from its first event. The run goes on when
    /// the reader goes away (CONV-4). A request id that is known attaches to
    /// the first run of that id (CONV-9).
    pub fn submit(&self, request: RunRequest) -> Result<Subscription, Error> {
        let catalog = self.0.catalog.load();
        catalog.agent(request.key.agent.as_str())?;
        if let Some(guest) = &request.guest {
            catalog.agent(guest.as_str())?;
        }
        if request.content.trim().is_empty() {
            return Err(Error::EmptyContent);
        }
        if let Some(log) = self.known_request(&request) {
            return Ok(log.subscribe(0));
        }
        self.submit_job(Job::new(request, Arc::default()))
    }

    /// The handle of a runtime that is known from inside.
    pub(crate) fn of(inner: &Arc<Inner>) -> Self {
        Self(Arc::clone(inner))
    }

    /// Submits a run that has been checked.
    pub(crate) fn submit_job(&self, job: Job) -> Result<Subscription, Error> {
        let subscription = job.log.subscribe(0);
        let key = job.request.key.clone();
        self.command(&key, Command::Run(Box::new(job)))?;
        Ok(subscription)
    }

    fn known_request(&self, request: &RunRequest) -> Option<Arc<RunLog>> {
        let id = request.request_id.as_deref()?;
        let shared = self.0.registry.get(&request.key)?;
        let live = shared.live();
        let current = live
            .current
            .iter()
            .find(|c| c.request_id == id)
            .map(|c| &c.log);
        let queued = || {
            live.queued
                .iter()
                .find(|(queued, _)| queued == id)
                .map(|(_, log)| log)
        };
        current.or_else(queued).cloned()
    }

    fn command(&self, key: &ConversationKey, command: Command) -> Result<(), Error> {
        if self.0.shutdown.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let bound = self.0.catalog.load().limits.queued_runs;
        self.0
            .registry
            .submit(key, bound, command, |shared, commands| {
                let conversation = Conversation::new(Arc::clone(&self.0), shared, commands);
                self.0.tasks.spawn(conversation.work());
            })?;
        Ok(())
    }

    async fn ask_task<T>(
        &self,
        key: &ConversationKey,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.command(key, command(reply))?;
        answer.await.unwrap_or_else(|_| {
            // Whoever had to answer is gone.
            Err(if self.0.shutdown.is_cancelled() {
                Error::ShuttingDown
            } else {
                Error::Panicked
            })
        })
    }

    /// Cancels the run, or the compaction, in flight (CONV-5). It bypasses the
    /// queue.
    pub fn kill(&self, key: &ConversationKey) -> Result<(), Error> {
        let in_flight = self.0.registry.get(key).and_then(|shared| {
            let live = shared.live();
            let current = live.current.as_ref().map(|current| current.cancel.clone());
            current.or_else(|| live.compacting.clone())
        });
        let in_flight = in_flight.ok_or_else(|| Error::NothingRunning(key.clone()))?;
        in_flight.cancel();
        Ok(())
    }

    /// Puts a user message into the run in flight at its next step (RUN-8).
    /// Hooks rewrite it as they do what begins a run, or refuse it.
    pub async fn steer(&self, key: &ConversationKey, content: String) -> Result<(), Error> {
        if content.trim().is_empty() {
            return Err(Error::EmptyContent);
        }
        let nothing = || Error::NothingRunning(key.clone());
        let shared = self.0.registry.get(key).ok_or_else(nothing)?;
        let facts = {
            let live = shared.live();
            let steers = live.steers.as_ref().ok_or_else(nothing)?;
            steers.check(key, content.len())?;
            Arc::clone(&steers.facts)
        };
        let content = facts.preprocess(&self.0, content).await?;
        let mut live = shared.live();
        // The run may have ended meanwhile, and another one begun.
        let steers = live.steers.as_mut();
        let steers = steers.filter(|steers| Arc::ptr_eq(&steers.facts, &facts));
        steers.ok_or_else(nothing)?.push(key, content)
    }

    /// Answers a pending ask (RUN-7), for the owner. It bypasses the queue. What is allowed
    /// for good is on disk when this returns; if it cannot be kept, the ask
    /// stays as it was.
    pub async fn reply(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
    ) -> Result<(), Error> {
        self.reply_from(key, ask_id, content, &Principal::Owner)
            .await
    }

    /// [`Runtime::reply`] by a client of this principal, who is kept beside
    /// what is allowed for good.
    pub async fn reply_from(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
        by: &Principal,
    ) -> Result<(), Error> {
        let claim = self.0.asks.claim(key, ask_id, content)?;
        if let Some(rule) = claim.rule() {
            let kept = self.0.router.keep(rule, self.0.now(), by);
            kept.await.map_err(Error::NotKept)?;
        }
        claim.settle(by);
        Ok(())
    }

    /// Asks owners, in their inbox and before whoever watches, whether something
    /// may be, that no run waits for. `None` if the runtime goes down first.
    pub async fn ask_owner(&self, key: &ConversationKey, matter: Matter) -> Option<bool> {
        let rt = &self.0;
        let option = |label: &str, description: &str| AskOption {
            label: label.into(),
            description: description.into(),
        };
        let ask = Arc::new(Ask {
            id: rt.asks.new_id(),
            kind: AskKind::Approval,
            questions: vec![AskQuestion {
                question: matter.question,
                header: "Approval".into(),
                options: vec![
                    option("Allow once", "it counts from now on"),
                    option("Deny", "it does not count, and is kept aside"),
                ],
                multi_select: false,
            }],
            tool: matter.tool,
            detail: matter.detail,
            reason: matter.reason,
            ..Ask::default()
        });
        let pending = PendingAsk {
            key: key.clone(),
            ask,
            asked_at: rt.now(),
            inbox: true,
        };
        let mut wait = rt.asks.open(pending, None);
        let (inner, key) = (Arc::clone(rt), Arc::new(key.clone()));
        wait.show(move |event| {
            inner.hub.publish(|| HubEvent {
                seq: 0,
                key: Arc::clone(&key),
                run: 0,
                speaker: key.agent.as_str().into(),
                event,
                at: inner.now(),
            });
        });
        let answer = tokio::select! {
            answer = wait.answer() => answer?,
            () = rt.shutdown.cancelled() => return None,
        };
        Some(matches!(answer, Answer::AllowOnce | Answer::AllowAlways))
    }

    /// Pending asks, oldest first; `None` means any.
    pub fn asks(&self, agent: Option<&str>, sender: Option<&str>) -> Vec<PendingAsk> {
        self.0.asks.list(agent, sender)
    }

    /// Summarises the working history now (RUN-5). It can be killed.
    pub async fn compact(
        &self,
        key: &ConversationKey,
        focus: Option<String>,
    ) -> Result<String, Error> {
        let focus = focus.map(String::into_boxed_str);
        self.ask_task(key, |reply| Command::Compact { focus, reply })
            .await
    }

    /// Puts the working history away as an archive without a summary, and
    /// begins an empty one (CONV-11). The answer is the archive's title; it is
    /// empty if there was nothing to put away.
    ///
    /// # Errors
    /// [`Error::NoConversation`], and what keeps the marker from the disk.
    pub async fn start_fresh(&self, key: &ConversationKey) -> Result<String, Error> {
        self.ask_task(key, |reply| Command::StartFresh { reply })
            .await
    }

    /// Changes title or default working directory (CONV-6, CONV-7).
    pub async fn set(
        &self,
        key: &ConversationKey,
        title: Option<String>,
        cwd: Option<PathBuf>,
    ) -> Result<(), Error> {
        let change = Change { title, cwd };
        if let Some(shared) = self.0.registry.get(key) {
            // A run may be going on: it must not make this wait.
            if shared.live().is_open {
                let at = apply_change(&shared, &change).await?;
                shared.synced_at_end(at).await?;
                return Ok(());
            }
        }
        let change = Box::new(change);
        self.ask_task(key, |reply| Command::Set { change, reply })
            .await
    }

    /// Moves a conversation to the trash (STORE-8).
    pub async fn remove(&self, key: &ConversationKey) -> Result<(), Error> {
        self.ask_task(key, |reply| Command::Remove { reply }).await
    }

    /// The run in flight of a conversation, or the last one that ended while
    /// the conversation was in memory (WIRE-7).
    pub fn attach(&self, key: &ConversationKey) -> Option<Arc<RunLog>> {
        let shared = self.0.registry.get(key)?;
        let live = shared.live();
        live.current
            .as_ref()
            .map(|c| Arc::clone(&c.log))
            .or_else(|| live.last.clone())
    }

    /// A run by its number: in flight, or the last one that ended while the
    /// conversation was in memory.
    pub fn attach_run(&self, key: &ConversationKey, run: u64) -> Option<Arc<RunLog>> {
        let shared = self.0.registry.get(key)?;
        let live = shared.live();
        let current = live.current.as_ref().map(|current| &current.log);
        let mut known = current.into_iter().chain(&live.last);
        known.find(|log| log.run() == run).cloned()
    }

    /// Carries on a run that a crash cut off (STORE-7). Nothing happens where
    /// none was.
    pub fn resume(&self, key: &ConversationKey) -> Result<(), Error> {
        self.command(key, Command::Resume)
    }

    /// How the last run of a conversation ended, from its log.
    pub async fn last_end(&self, key: &ConversationKey) -> Result<RunRecord, Error> {
        self.ask_task(key, |reply| Command::LastEnd { reply }).await
    }

    /// Events of all runs from now on (WIRE-8).
    pub fn watch(&self) -> HubSubscription {
        self.0.hub.subscribe()
    }

    /// Events of all runs behind this one of this life; where some of them are
    /// not kept any more, the subscription begins by saying how many.
    pub fn watch_after(&self, seq: u64) -> HubSubscription {
        self.0.hub.subscribe_after(seq)
    }

    /// Lets events go that no watcher will come back for; answers how many
    /// bytes of them are kept. To be called now and then.
    pub fn tidy_events(&self) -> usize {
        self.0.hub.tidy();
        self.0.hub.bytes()
    }

    /// Names the life of this runtime, within which events are numbered.
    pub fn life(&self) -> &str {
        self.0.hub.life()
    }

    /// What is in memory of a conversation.
    pub fn live(&self, key: &ConversationKey) -> Option<LiveInfo> {
        self.0
            .registry
            .get(key)
            .filter(|s| s.live().is_open)
            .map(|shared| shared.info())
    }

    /// Everything that is in memory.
    pub fn live_all(&self) -> Vec<LiveInfo> {
        self.0
            .registry
            .all()
            .iter()
            .filter(|s| s.live().is_open)
            .map(|s| s.info())
            .collect()
    }

    /// Conversations in memory and runs in flight.
    pub fn load(&self) -> (usize, u64) {
        (
            self.0.registry.len(),
            self.0.running.load(Ordering::Relaxed),
        )
    }

    /// How the run of a request came out (CONV-9), as its log says: for whoever
    /// waited for its end when the daemon was killed. Waits for what goes on in
    /// the conversation. `None`: no run of this id ever began, or so many others
    /// did that it is forgotten.
    ///
    /// # Errors
    /// What reading the log may fail with.
    pub async fn outcome(
        &self,
        key: &ConversationKey,
        request_id: &str,
    ) -> Result<Option<RunOutcome>, Error> {
        let request_id = request_id.into();
        self.ask_task(key, |reply| Command::Outcome { request_id, reply })
            .await
    }

    /// How many runs have begun, or `None` while one goes on: who looks now and
    /// then sees whether it was at rest meanwhile.
    pub fn runs_at_rest(&self) -> Option<u64> {
        let running = self.0.running.load(Ordering::Relaxed);
        (running == 0).then(|| self.0.begun.load(Ordering::Relaxed))
    }

    /// What an agent may do, in effect: its tools in scope, and what the gate
    /// says of each.
    pub fn rights(&self, agent: &str) -> Result<(Arc<AgentConfig>, Vec<ToolRights>), Error> {
        let catalog = self.0.catalog.load_full();
        let agent = catalog.agent(agent)?;
        let specs = self.0.specs(agent, &catalog);
        let tools = specs.iter().map(|spec| rights::rights(agent, spec));
        Ok((Arc::clone(agent), tools.collect()))
    }

    /// Scope violations since the start (GATE-1).
    pub fn violations(&self) -> u64 {
        self.0.violations.load(Ordering::Relaxed)
    }

    /// The store, for reading what is not in memory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.0.storage
    }

    /// Stops every run with 503 and waits until all conversations are closed.
    pub async fn shutdown(&self) {
        self.0.shutdown.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
