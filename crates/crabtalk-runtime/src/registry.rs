//! The conversations in memory.
//!
//! Invariants: at most one task per pair; submission and retirement share one lock, so
//! that a command reaches the running task or starts a new one; idle conversations are
//! removed.

mod steers;

pub(crate) use steers::{Steers, tell_untaken};

use crate::Error;
use crate::command::{Change, Command, Job};
use crate::events::{COMPACTION, RunLog, Waits};
use crabtalk_domain::storage::{ConversationLog, Meta, MetaRecord, Position, Record};
use crabtalk_domain::{BoxFuture, ConversationKey, storage};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The listed state of a conversation in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveInfo {
    /// The conversation.
    pub key: ConversationKey,
    /// Title, folder and other metadata.
    pub meta: Meta,
    /// Number of messages, including archived ones.
    pub message_count: u64,
    /// Whether a run is in flight.
    pub running: bool,
    /// The client's id of the request that started it; empty if it has none.
    pub request_id: String,
    /// Number of runs queued behind it.
    pub queued: usize,
}

/// The run in flight.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) log: Arc<RunLog>,
    pub(crate) cancel: CancellationToken,
    pub(crate) request_id: String,
    /// Reported to queued runs.
    origin: String,
    guest: String,
}

impl Current {
    fn of(job: &Job) -> Self {
        Self {
            log: Arc::clone(&job.log),
            cancel: job.cancel.clone(),
            request_id: job.request.request_id.clone().unwrap_or_default(),
            origin: job.request.origin.to_string(),
            guest: job
                .request
                .guest
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }
}

/// The state of a conversation that other tasks may read and change.
pub(crate) struct Shared {
    pub(crate) key: Arc<ConversationKey>,
    mailbox: mpsc::Sender<Command>,
    live: Mutex<Live>,
    log: Mutex<Option<Box<dyn ConversationLog>>>,
}

#[derive(Default)]
pub(crate) struct Live {
    pub(crate) current: Option<Current>,
    /// The last run that ended while the conversation was in memory.
    pub(crate) last: Option<Arc<RunLog>>,
    /// Queued runs in order, with their request ids.
    pub(crate) queued: VecDeque<(String, Arc<RunLog>)>,
    /// Cancels the compaction on demand in progress.
    pub(crate) compacting: Option<CancellationToken>,
    /// Steering messages for the next step; `None` while no run accepts any.
    pub(crate) steers: Option<Steers>,
    pub(crate) meta: Meta,
    pub(crate) message_count: u64,
    pub(crate) is_open: bool,
}

impl Live {
    /// Reports their positions to the queued runs.
    fn tell_waiting(&self) {
        let (in_front, origin, guest) = match (&self.current, &self.compacting) {
            (Some(current), _) => (1, current.origin.as_str(), current.guest.as_str()),
            (None, Some(_)) => (1, COMPACTION, ""),
            (None, None) => (0, "", ""),
        };
        for (at, (_, log)) in self.queued.iter().enumerate() {
            if at + in_front > 0 {
                log.wait_behind(Waits {
                    ahead: at + in_front,
                    origin: origin.to_owned(),
                    guest: guest.to_owned(),
                });
            }
        }
    }
}

impl Shared {
    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live
            .lock()
            .expect("no code panics while it holds a conversation's state")
    }

    fn log(&self) -> MutexGuard<'_, Option<Box<dyn ConversationLog>>> {
        self.log
            .lock()
            .expect("no code panics while it holds a log")
    }

    /// Sets or removes the open log.
    pub(crate) fn set_log(&self, log: Option<Box<dyn ConversationLog>>) {
        self.live().is_open = log.is_some();
        *self.log() = log;
    }

    /// Appends to the open log, in the order of the calls.
    pub(crate) fn append(
        &self,
        records: &[Record],
    ) -> BoxFuture<'static, Result<Position, storage::Error>> {
        match self.log().as_mut() {
            Some(log) => log.append(records),
            None => {
                let closed = storage::Error::NotFound(format!("open log of {}", self.key));
                Box::pin(std::future::ready(Err(closed)))
            }
        }
    }

    /// Resolves when the position is durable.
    pub(crate) fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), storage::Error>> {
        match self.log().as_ref() {
            Some(log) => log.synced(upto),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// Resolves when the position, which ends a run, is durable.
    pub(crate) fn synced_at_end(
        &self,
        upto: Position,
    ) -> BoxFuture<'static, Result<(), storage::Error>> {
        match self.log().as_ref() {
            Some(log) => log.synced_at_end(upto),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// Appends changed state and updates lists. The change is durable once the position
    /// is.
    pub(crate) async fn apply(&self, change: &Change) -> Result<Position, Error> {
        let cwd = change
            .cwd
            .as_ref()
            .map(|cwd| cwd.to_string_lossy().into_owned());
        let record = MetaRecord {
            title: change.title.clone(),
            cwd: cwd.clone(),
            own_cwd: cwd.as_ref().map(|_| true),
            ..MetaRecord::default()
        };
        let at = self.append(&[Record::Meta(record)]).await?;
        let mut live = self.live();
        if let Some(title) = &change.title {
            live.meta.title.clone_from(title);
        }
        if let Some(cwd) = cwd {
            live.meta.cwd = cwd;
            live.meta.own_cwd = true;
        }
        Ok(at)
    }

    /// Whether the open log is unchanged since this process wrote it.
    pub(crate) fn is_current(&self) -> BoxFuture<'static, bool> {
        match self.log().as_ref() {
            Some(log) => log.is_current(),
            None => Box::pin(std::future::ready(false)),
        }
    }

    /// Puts a queued run in flight; returns `false` if it was withdrawn.
    pub(crate) fn begin(&self, job: &Job) -> bool {
        let mut live = self.live();
        let is_next = |(_, log): &mut (String, Arc<RunLog>)| Arc::ptr_eq(log, &job.log);
        if live.queued.pop_front_if(is_next).is_none() {
            return false;
        }
        live.current = Some(Current::of(job));
        live.tell_waiting();
        true
    }

    /// Removes a queued run before it begins. Shares a lock with [`Shared::begin`], so that
    /// a run is either withdrawn or begun.
    pub(crate) fn withdraw(&self, request_id: &str) -> Result<(), Error> {
        let mut live = self.live();
        let current = live.current.as_ref();
        if current.is_some_and(|current| current.request_id == request_id) {
            return Err(Error::Begun((*self.key).clone()));
        }
        let at = live.queued.iter().position(|(id, _)| id == request_id);
        let Some((_, log)) = at.and_then(|at| live.queued.remove(at)) else {
            return Err(Error::NotQueued((*self.key).clone()));
        };
        live.tell_waiting();
        drop(live);
        log.refuse(Error::Withdrawn);
        Ok(())
    }

    /// Puts a run in flight that was never queued.
    pub(crate) fn take_up(&self, job: &Job) {
        let mut live = self.live();
        live.current = Some(Current::of(job));
        live.tell_waiting();
    }

    /// Registers a compaction on demand and its cancellation.
    pub(crate) fn begin_compaction(&self, cancel: CancellationToken) {
        let mut live = self.live();
        live.compacting = Some(cancel);
        live.tell_waiting();
    }

    /// Returns the run in flight to the front of the queue.
    pub(crate) fn step_back(&self, job: &Job) {
        let id = job.request.request_id.clone().unwrap_or_default();
        let mut live = self.live();
        live.current = None;
        live.queued.push_front((id, Arc::clone(&job.log)));
    }

    /// Takes a run out of flight; clients that attach later receive its end.
    pub(crate) fn release(&self, log: &Arc<RunLog>) {
        self.forget_current();
        self.live().last = Some(Arc::clone(log));
    }

    /// Takes a refused message or a replay out of flight. The last run is unchanged
    /// (WIRE-7).
    pub(crate) fn forget_current(&self) {
        let mut live = self.live();
        live.current = None;
        live.steers = None;
    }

    pub(crate) fn info(&self) -> LiveInfo {
        let live = self.live();
        LiveInfo {
            key: (*self.key).clone(),
            meta: live.meta.clone(),
            message_count: live.message_count,
            running: live.current.is_some(),
            request_id: live
                .current
                .as_ref()
                .map(|current| current.request_id.clone())
                .unwrap_or_default(),
            queued: live.queued.len(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Registry(Mutex<HashMap<ConversationKey, Arc<Shared>>>);

impl Registry {
    fn entries(&self) -> MutexGuard<'_, HashMap<ConversationKey, Arc<Shared>>> {
        self.0
            .lock()
            .expect("no code panics while it holds the registry")
    }

    pub(crate) fn get(&self, key: &ConversationKey) -> Option<Arc<Shared>> {
        self.entries().get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Shared>> {
        self.entries().values().cloned().collect()
    }

    /// Sends a command to the conversation's task, or starts the task with `start`.
    pub(crate) fn submit(
        &self,
        key: &ConversationKey,
        bound: usize,
        command: Command,
        start: impl FnOnce(Arc<Shared>, mpsc::Receiver<Command>),
    ) -> Result<Arc<Shared>, Error> {
        let mut entries = self.entries();
        if let Some(shared) = entries.get(key) {
            shared.enqueue(bound, command)?;
            return Ok(Arc::clone(shared));
        }
        let (mailbox, commands) = mpsc::channel(bound.max(1));
        let shared = Arc::new(Shared {
            key: Arc::new(key.clone()),
            mailbox,
            live: Mutex::default(),
            log: Mutex::default(),
        });
        shared.enqueue(bound, command)?;
        entries.insert(key.clone(), Arc::clone(&shared));
        drop(entries);
        start(Arc::clone(&shared), commands);
        Ok(shared)
    }

    /// Removes an idle conversation, unless a command has just arrived.
    pub(crate) fn retire(&self, shared: &Arc<Shared>, commands: &mpsc::Receiver<Command>) -> bool {
        let mut entries = self.entries();
        if !commands.is_empty() {
            return false;
        }
        if entries
            .get(&*shared.key)
            .is_some_and(|entry| Arc::ptr_eq(entry, shared))
        {
            entries.remove(&*shared.key);
        }
        if entries.is_empty() {
            // Releases the memory of a burst of conversations.
            entries.shrink_to_fit();
        }
        true
    }
}

impl Shared {
    fn enqueue(&self, bound: usize, command: Command) -> Result<(), Error> {
        let mut live = self.live();
        let is_busy = live.current.is_some() || live.compacting.is_some();
        // Under the lock, so that no run starts in between.
        if matches!(command, Command::Remove { .. }) && (is_busy || !live.queued.is_empty()) {
            return Err(Error::Busy((*self.key).clone()));
        }
        let queued = command.job().map(|job| {
            let id = job.request.request_id.clone().unwrap_or_default();
            (id, Arc::clone(&job.log))
        });
        match self.mailbox.try_send(command) {
            Ok(()) => {
                live.queued.extend(queued);
                live.tell_waiting();
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(_)) => Err(Error::QueueFull {
                key: (*self.key).clone(),
                bound,
            }),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Error::ShuttingDown),
        }
    }
}
