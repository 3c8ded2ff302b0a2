//! One task owns one conversation.
//!
//! Invariants: history is appended only here, so its order is total; what is
//! in memory is on disk, and where a write failed the memory is dropped and
//! read again; the task exists while there is work and a little longer.

use crate::events::RunLog;
use crate::history::{self, UNKNOWN};
use crate::registry::{Current, Live, Shared};
use crate::run::{self, RunRequest};
use crate::runtime::Inner;
use crate::{Error, framing};
use crabtalk_domain::storage::{
    self, MetaRecord, NewConversation, Opened, Record, RunPhase, RunRecord,
};
use crabtalk_domain::{AgentEvent, History};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How long an idle conversation stays in memory: long enough for a person's
/// next message or a gateway's burst, short enough that a thousand of them
/// cost nothing a moment later.
const LINGER: Duration = Duration::from_secs(5);

/// Request ids that are remembered (CONV-9).
pub(crate) const REMEMBERED_REQUESTS: usize = 256;

/// A run on its way to the conversation's task.
pub(crate) struct Job {
    pub(crate) request: RunRequest,
    pub(crate) log: Arc<RunLog>,
}

/// Changes to what a conversation is called and where it works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
}

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What the task takes, in order.
pub(crate) enum Command {
    Run(Job),
    Compact {
        focus: Option<String>,
        reply: Reply<String>,
    },
    Set {
        change: Change,
        reply: Reply<()>,
    },
    Remove {
        reply: Reply<()>,
    },
    LastEnd {
        reply: Reply<RunRecord>,
    },
}

impl Command {
    fn refuse(self, error: Error) {
        // Whoever waited may be gone; then there is nobody to tell.
        match self {
            Self::Run(job) => job.log.refuse(error),
            Self::Compact { reply, .. } => drop(reply.send(Err(error))),
            Self::Set { reply, .. } | Self::Remove { reply } => drop(reply.send(Err(error))),
            Self::LastEnd { reply } => drop(reply.send(Err(error))),
        }
    }
}

/// A conversation's working state while it is in memory.
pub(crate) struct Open {
    pub(crate) history: History,
    pub(crate) has_guests: bool,
    pub(crate) archived_messages: u64,
    pub(crate) last_run: u64,
    pub(crate) requests: VecDeque<(String, u64)>,
    /// A run that a crash cut off, to be told to the next client.
    pub(crate) interrupted: Option<u64>,
    /// How the last run ended.
    pub(crate) last_end: Option<RunRecord>,
}

/// The task.
pub(crate) struct Conversation {
    rt: Arc<Inner>,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    open: Option<Open>,
}

impl Conversation {
    pub(crate) fn new(
        rt: Arc<Inner>,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            rt,
            shared,
            commands,
            open: None,
        }
    }

    /// Works until there has been nothing to do for a while.
    pub(crate) async fn work(mut self) {
        let shutdown = self.rt.shutdown.clone();
        loop {
            let next = tokio::select! {
                biased;
                () = shutdown.cancelled() => None,
                next = tokio::time::timeout(LINGER, self.commands.recv()) => next.ok().flatten(),
            };
            match next {
                Some(command) => self.handle(command).await,
                None if shutdown.is_cancelled() => break,
                None if self.rt.registry.retire(&self.shared, &self.commands) => return,
                None => {}
            }
        }
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            command.refuse(Error::ShuttingDown);
        }
        self.shared.set_log(None);
        self.rt.registry.retire(&self.shared, &self.commands);
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Run(job) => {
                self.shared.live().queued.pop_front();
                self.run(job).await;
            }
            Command::Compact { focus, reply } => {
                // Whoever asked may have gone.
                let _ = reply.send(self.compact(focus).await);
            }
            Command::Set { change, reply } => {
                let _ = reply.send(self.set(change).await);
            }
            Command::Remove { reply } => {
                let _ = reply.send(self.remove().await);
            }
            Command::LastEnd { reply } => {
                let _ = reply.send(self.last_end().await);
            }
        }
    }

    /// Loads the conversation unless it is in memory already.
    async fn ensure_open(&mut self, create: Option<NewConversation>) -> Result<(), Error> {
        if self.open.is_some() {
            return Ok(());
        }
        let key = &self.shared.key;
        let opened = self.rt.storage.open(key, create).await?;
        let opened = opened.ok_or_else(|| Error::NoConversation((**key).clone()))?;
        let open = self.take(opened)?;
        self.open = Some(open);
        Ok(())
    }

    /// Makes what the log holds valid, on disk too (STORE-7).
    fn take(&self, opened: Opened) -> Result<Open, Error> {
        let Opened {
            log,
            meta,
            history,
            archived_messages,
            last_run,
            open_run,
            requests,
            last_end,
        } = opened;
        let (history, added) = history::repair(history, UNKNOWN);
        self.shared.set_log(Some(log));
        let mut records: Vec<Record> = added.into_iter().map(Record::Message).collect();
        let interrupted = open_run.as_ref().map(|run| run.id);
        if let Some(run) = open_run {
            let at = self.rt.now();
            records.push(Record::Run(RunRecord {
                phase: RunPhase::Interrupted,
                at,
                ..run
            }));
        }
        if !records.is_empty() {
            self.shared.append(&records)?;
        }
        let mut live = self.shared.live();
        live.meta = meta;
        live.message_count = archived_messages + history.len() as u64;
        Ok(Open {
            has_guests: framing::has_guests(&history),
            history: Arc::new(history),
            archived_messages,
            last_run,
            requests: requests.into(),
            interrupted,
            last_end,
        })
    }

    /// Executes one run and tells its readers how it ended, whatever happens.
    async fn run(&mut self, job: Job) {
        let Job { request, log } = job;
        if self.rt.shutdown.is_cancelled() {
            return log.refuse(Error::ShuttingDown);
        }
        if let Err(error) = self.ensure_open(Some(self.creation(&request))).await {
            return log.refuse(error);
        }
        let Some(open) = self.open.as_mut() else {
            return log.refuse(Error::ShuttingDown);
        };
        let cancel = CancellationToken::new();
        {
            let mut live = self.shared.live();
            live.current = Some(Current {
                log: Arc::clone(&log),
                cancel: cancel.clone(),
                request_id: request.request_id.clone().unwrap_or_default(),
            });
            live.steers = Some(Vec::new());
        }
        let intact = run::execute(&self.rt, &self.shared, open, request, &log, cancel).await;
        if !intact {
            // Memory and disk may differ: the disk is right.
            self.open = None;
            self.shared.set_log(None);
        }
    }

    /// What the first message of a pair settles (CONV-6).
    fn creation(&self, request: &RunRequest) -> NewConversation {
        let catalog = self.rt.catalog.load();
        let agent_cwd = catalog
            .agents
            .get(&self.shared.key.agent)
            .and_then(|a| a.cwd.clone());
        let cwd = request
            .cwd
            .clone()
            .or(agent_cwd)
            .or_else(|| catalog.user_home.clone())
            .unwrap_or_else(|| PathBuf::from("/"));
        NewConversation {
            created_at: self.rt.now(),
            cwd: cwd.to_string_lossy().into_owned(),
        }
    }

    async fn compact(&mut self, _focus: Option<String>) -> Result<String, Error> {
        self.ensure_open(None).await?;
        Err(Error::Refused(crabtalk_domain::Refusal {
            code: 501,
            message: "compact is not built yet".into(),
        }))
    }

    async fn last_end(&mut self) -> Result<RunRecord, Error> {
        self.ensure_open(None).await?;
        let end = self.open.as_ref().and_then(|open| open.last_end.clone());
        end.ok_or_else(|| Error::NothingRunning((*self.shared.key).clone()))
    }

    async fn set(&mut self, change: Change) -> Result<(), Error> {
        self.ensure_open(None).await?;
        apply_change(&self.shared, &change)
    }

    async fn remove(&mut self) -> Result<(), Error> {
        self.open = None;
        self.shared.set_log(None);
        {
            let mut live = self.shared.live();
            let queued = std::mem::take(&mut live.queued);
            *live = Live {
                queued,
                ..Live::default()
            };
        }
        let key = &self.shared.key;
        match self.rt.storage.remove(key).await {
            Err(storage::Error::NotFound(_)) => Err(Error::NoConversation((**key).clone())),
            done => Ok(done?),
        }
    }
}

/// Appends changed state and lets lists see it.
pub(crate) fn apply_change(shared: &Shared, change: &Change) -> Result<(), Error> {
    let cwd = change
        .cwd
        .as_ref()
        .map(|cwd| cwd.to_string_lossy().into_owned());
    let record = MetaRecord {
        title: change.title.clone(),
        cwd: cwd.clone(),
        ..MetaRecord::default()
    };
    shared.append(&[Record::Meta(record)])?;
    if let Some(title) = &change.title {
        shared.rename_for_title(title)?;
    }
    let mut live = shared.live();
    if let Some(title) = &change.title {
        live.meta.title.clone_from(title);
    }
    if let Some(cwd) = cwd {
        live.meta.cwd = cwd;
    }
    Ok(())
}

/// The event that tells a client of a run that a crash cut off.
pub(crate) fn interruption(run: u64) -> AgentEvent {
    AgentEvent::Interrupted {
        run,
        reason: "the daemon stopped while this run was going on".into(),
    }
}
