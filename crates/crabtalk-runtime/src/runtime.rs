//! The handle of the runtime: submit, attach, change, stop.

mod asking;
mod expecting;
mod telling;

use crate::Error;
use crate::asks::AskDesk;
use crate::catalog::Catalog;
use crate::command::{Change, Command, Job};
use crate::conversation::{self, Rewound};
use crate::delegates::DelegateNumbers;
use crate::ends::Ends;
use crate::events::{Hub, RunLog, Subscription};
use crate::grants::HostGrants;
use crate::inner::Inner;
use crate::registry::{Registry, Steers};
use crate::request::RunRequest;
use crate::toolbox::Toolbox;
use arc_swap::ArcSwap;
use crabtalk_domain::model::Model;
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::ToolProvider;
use crabtalk_domain::{Clock, ConversationKey, Hook, Ledger, RunEnds};
use crabtalk_gate::Disk;
use crabtalk_gate::approvals::ApprovalBook;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The ports of a runtime.
pub struct Parts {
    /// Answers requests to language models.
    pub model: Arc<dyn Model>,
    /// Stores the conversations.
    pub storage: Arc<dyn Storage>,
    /// Tools in addition to the runtime's.
    pub tools: Vec<Arc<dyn ToolProvider>>,
    /// The extension point; `Arc::new(())` for none.
    pub hook: Arc<dyn Hook>,
    /// Accounts for model calls; `Arc::new(())` for none.
    pub ledger: Arc<dyn Ledger>,
    /// Listeners for the ends of runs.
    pub ends: Vec<Arc<dyn RunEnds>>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Stored approvals.
    pub approvals: Arc<dyn ApprovalBook>,
    /// Resolves links in paths, also those that a command names.
    pub disk: Arc<dyn Disk>,
    /// Unique numbers for `delegate:<n>`.
    pub delegates: Arc<dyn DelegateNumbers>,
}

/// Runs agents on conversations. Clones share their state.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

impl Runtime {
    /// Creates a runtime without tasks; they start with the first request.
    pub fn new(parts: Parts, catalog: Catalog) -> Self {
        let era_ms = parts.clock.now().as_millisecond();
        Self(Arc::new(Inner {
            model: parts.model,
            storage: parts.storage,
            toolbox: Toolbox::new(parts.tools, parts.approvals, parts.disk),
            hook: parts.hook,
            ledger: parts.ledger,
            ends: Ends::new(parts.ends),
            clock: parts.clock,
            catalog: ArcSwap::from_pointee(catalog),
            registry: Registry::default(),
            hub: Arc::new(Hub::new(era_ms)),
            asks: Arc::new(AskDesk::new(era_ms)),
            hosts: HostGrants::default(),
            shutdown: CancellationToken::new(),
            violations: AtomicU64::new(0),
            running: AtomicU64::new(0),
            delegates: parts.delegates,
            tasks: TaskTracker::new(),
            start: conversation::start,
        }))
    }

    /// Replaces the configuration; runs in flight continue with the old one.
    pub fn set_catalog(&self, catalog: Catalog) {
        self.0.catalog.store(Arc::new(catalog));
    }

    /// Submits a run and subscribes to its events. The run continues if the subscription is
    /// dropped (CONV-4). A known request id attaches to its first run (CONV-9).
    ///
    /// # Errors
    ///
    /// Fails for an unknown agent, empty content, a full queue ([`Error::QueueFull`]) and
    /// during a shutdown. The subscription reports later errors.
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
        self.0.submit_job(Job::new(request, Arc::default()))
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

    async fn ask_task<T>(
        &self,
        key: &ConversationKey,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.0.command(key, command(reply))?;
        answer.await.unwrap_or_else(|_| {
            // The task has ended.
            Err(if self.0.shutdown.is_cancelled() {
                Error::ShuttingDown
            } else {
                Error::Panicked
            })
        })
    }

    /// Cancels the run or compaction in flight (CONV-5). Bypasses the queue.
    ///
    /// # Errors
    /// [`Error::NothingRunning`] if none is in flight.
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

    /// Removes a queued message before its run begins (CONV-3). Queued messages are not in
    /// the log, so that it cannot reappear after a restart.
    ///
    /// # Errors
    /// [`Error::Begun`], or [`Error::NotQueued`] if no such message is queued.
    pub fn withdraw(&self, key: &ConversationKey, request_id: &str) -> Result<(), Error> {
        if request_id.is_empty() {
            let why = "the request id is empty; give the id of the message to withdraw";
            return Err(Error::BadRequest(why.into()));
        }
        let shared = self.0.registry.get(key);
        let shared = shared.ok_or_else(|| Error::NotQueued(key.clone()))?;
        shared.withdraw(request_id)
    }

    /// Adds a user message to the run in flight at its next step (RUN-8). The message is
    /// durable when this returns. Hooks may rewrite or refuse it.
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
        let content = self.0.preprocess(&facts, content).await?;
        // Another run may have started.
        let is_same = |steers: &&mut Steers| Arc::ptr_eq(&steers.facts, &facts);
        let appended = {
            let mut live = shared.live();
            let steers = live.steers.as_mut().filter(is_same);
            let steers = steers.ok_or_else(nothing)?;
            steers.push(&shared, content.clone())?
        };
        match appended.await {
            Ok(at) => Ok(shared.synced_at_end(at).await?),
            Err(error) => {
                if let Some(steers) = shared.live().steers.as_mut().filter(is_same) {
                    steers.take_back(&content);
                }
                Err(error.into())
            }
        }
    }

    /// Summarises the working history now (RUN-5) and returns the summary. A kill cancels
    /// it.
    ///
    /// # Errors
    /// [`Error::NoConversation`], [`Error::Cancelled`], and errors of the model or the
    /// store.
    pub async fn compact(
        &self,
        key: &ConversationKey,
        focus: Option<String>,
    ) -> Result<String, Error> {
        let focus = focus.map(String::into_boxed_str);
        self.ask_task(key, |reply| Command::Compact { focus, reply })
            .await
    }

    /// Archives the working history without a summary and begins an empty one (CONV-11).
    /// Returns the archive's title, which is empty if there was nothing to archive.
    ///
    /// # Errors
    /// [`Error::NoConversation`], and errors of the store.
    pub async fn start_fresh(&self, key: &ConversationKey) -> Result<String, Error> {
        self.ask_task(key, |reply| Command::StartFresh { reply })
            .await
    }

    /// Restores the working history before the user message at an index from a page
    /// (CONV-13). The log keeps later messages. Waits for queued runs, like a compaction.
    ///
    /// # Errors
    /// [`Error::NoConversation`], [`Error::NoMessage`], and errors of the store.
    pub async fn rewind(&self, key: &ConversationKey, to: u64) -> Result<Rewound, Error> {
        self.ask_task(key, |reply| Command::Rewind { to, reply })
            .await
    }

    /// Archives the working history and restores that of an archive (CONV-14). Returns the
    /// title of the new archive, which is empty if there was nothing to archive.
    ///
    /// # Errors
    /// [`Error::NoConversation`], [`Error::NoArchive`], and errors of the store.
    pub async fn reopen(&self, key: &ConversationKey, archive: u32) -> Result<String, Error> {
        self.ask_task(key, |reply| Command::Reopen { archive, reply })
            .await
    }

    /// Changes the title or the default working directory (CONV-6, CONV-7).
    ///
    /// # Errors
    /// [`Error::NoConversation`], and errors of the store.
    pub async fn set(
        &self,
        key: &ConversationKey,
        title: Option<String>,
        cwd: Option<PathBuf>,
    ) -> Result<(), Error> {
        let change = Change { title, cwd };
        if let Some(shared) = self.0.registry.get(key) {
            // Does not wait for a run in flight.
            if shared.live().is_open {
                let at = shared.apply(&change).await?;
                shared.synced_at_end(at).await?;
                return Ok(());
            }
        }
        let change = Box::new(change);
        self.ask_task(key, |reply| Command::Set { change, reply })
            .await
    }

    /// Moves a conversation to the trash (STORE-8).
    ///
    /// # Errors
    /// [`Error::Busy`] while a run is in flight, and errors of the store.
    pub async fn remove(&self, key: &ConversationKey) -> Result<(), Error> {
        self.ask_task(key, |reply| Command::Remove { reply }).await
    }

    /// The run in flight of a conversation, or the last one that ended while the
    /// conversation was in memory (WIRE-7).
    pub fn attach(&self, key: &ConversationKey) -> Option<Arc<RunLog>> {
        let shared = self.0.registry.get(key)?;
        let live = shared.live();
        live.current
            .as_ref()
            .map(|c| Arc::clone(&c.log))
            .or_else(|| live.last.clone())
    }

    /// The run with this number: the one in flight, or the last one that ended while the
    /// conversation was in memory.
    pub fn attach_run(&self, key: &ConversationKey, run: u64) -> Option<Arc<RunLog>> {
        let shared = self.0.registry.get(key)?;
        let live = shared.live();
        let current = live.current.as_ref().map(|current| &current.log);
        let mut known = current.into_iter().chain(&live.last);
        known.find(|log| log.run() == run).cloned()
    }

    /// Resumes a run that a crash interrupted (STORE-7); does nothing if there is none.
    pub fn resume(&self, key: &ConversationKey) -> Result<(), Error> {
        self.0.command(key, Command::Resume)
    }

    /// Stops every run with 503 and waits until all conversations are closed.
    pub async fn shutdown(&self) {
        self.0.shutdown.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
