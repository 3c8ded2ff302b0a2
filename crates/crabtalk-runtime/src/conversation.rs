//! One task owns one conversation.
//!
//! Invariants: history is appended only here, so its order is total; what is
//! in memory is on disk, and where a write failed the memory is dropped and
//! read again; the task exists while there is work and a little longer.

use crate::events::RunLog;
use crate::history::{self, NOT_APPROVED, UNANSWERED, UNKNOWN};
use crate::registry::{Current, Live, Shared};
use crate::router::ASK_USER;
use crate::run::{self, Publisher, RunRequest};
use crate::runtime::Inner;
use crate::{Error, compaction, framing};
use crabtalk_domain::storage::{
    self, MetaRecord, NewConversation, Opened, Position, Record, RunPhase, RunRecord,
};
use crabtalk_domain::{AgentEvent, End, History, Origin, Role};
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
    /// Ends it, also before it has begun.
    pub(crate) cancel: CancellationToken,
    /// Where its asks are shown, if not in its own stream: at the root of a
    /// delegation (RUN-9).
    pub(crate) audience: Option<Arc<Publisher>>,
}

impl Job {
    /// A run whose asks are its own.
    pub(crate) fn new(request: RunRequest, log: Arc<RunLog>) -> Self {
        Self {
            request,
            log,
            cancel: CancellationToken::new(),
            audience: None,
        }
    }
}

/// Changes to what a conversation is called and where it works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
}

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What the task takes, in order. Small, since its queue has room for many of
/// them from the beginning on.
pub(crate) enum Command {
    Run(Box<Job>),
    Compact {
        focus: Option<Box<str>>,
        reply: Reply<String>,
    },
    Set {
        change: Box<Change>,
        reply: Reply<()>,
    },
    Remove {
        reply: Reply<()>,
    },
    LastEnd {
        reply: Reply<RunRecord>,
    },
    /// Carries on what a crash cut off.
    Resume,
}

impl Command {
    fn refuse(self, error: Error) {
        // Whoever waited may be gone; then there is nobody to tell.
        match self {
            Self::Run(job) => job.log.refuse(error),
            Self::Compact { reply, .. } => drop(reply.send(Err(error))),
            Self::Set { reply, .. } | Self::Remove { reply } => drop(reply.send(Err(error))),
            Self::LastEnd { reply } => drop(reply.send(Err(error))),
            Self::Resume => {}
        }
    }
}

/// A conversation's working state while it is in memory.
pub(crate) struct Open {
    pub(crate) history: History,
    pub(crate) has_guests: bool,
    pub(crate) archived_messages: u64,
    /// Whether the history begins with a summary.
    pub(crate) has_summary: bool,
    pub(crate) last_run: u64,
    pub(crate) requests: VecDeque<(String, u64)>,
    /// Runs that began within the working history, oldest first, with the
    /// index of the message that each answers.
    pub(crate) runs: Vec<(u64, usize)>,
    /// A run that a crash cut off, to be told to the next client.
    pub(crate) interrupted: Option<RunRecord>,
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
                self.run(*job).await;
            }
            Command::Compact { focus, reply } => {
                // Whoever asked may have gone.
                let _ = reply.send(self.compact(focus.as_deref()).await);
            }
            Command::Set { change, reply } => {
                let _ = reply.send(self.set(*change).await);
            }
            Command::Remove { reply } => {
                let _ = reply.send(self.remove().await);
            }
            Command::LastEnd { reply } => {
                let _ = reply.send(self.last_end().await);
            }
            Command::Resume => match self.ensure_open(None).await {
                Ok(()) => self.resume().await,
                Err(error) => {
                    tracing::warn!(conversation = %self.shared.key, %error, "cannot carry on a run");
                }
            },
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
        let waiting = opened.waiting;
        let repaired = history::repair(opened.history, |call| match call.name.as_str() {
            ASK_USER => UNANSWERED,
            _ if waiting.contains(&call.id) => NOT_APPROVED,
            _ => UNKNOWN,
        });
        self.shared.set_log(Some(opened.log));
        let added = repaired.added.into_iter();
        let mut records: Vec<Record> = added.map(Record::Message).collect();
        if let Some(run) = &opened.open_run {
            let (phase, at) = (RunPhase::Interrupted, self.rt.now());
            records.push(Record::Run(RunRecord {
                phase,
                at,
                ..run.clone()
            }));
        }
        if !records.is_empty() {
            self.shared.append(&records)?;
        }
        let index = |(run, at): (u64, usize)| (run, repaired.moved.get(at).copied().unwrap_or(0));
        let open = Open {
            has_guests: framing::has_guests(&repaired.history),
            history: repaired.history.into(),
            has_summary: opened.has_summary,
            runs: opened.runs.into_iter().map(index).collect(),
            archived_messages: opened.archived_messages,
            last_run: opened.last_run,
            requests: opened.requests.into(),
            interrupted: opened.open_run,
            last_end: opened.last_end,
        };
        let mut live = self.shared.live();
        live.meta = opened.meta;
        live.message_count = open.message_count();
        drop(live);
        Ok(open)
    }

    /// Executes one run and tells its readers how it ended, whatever happens.
    async fn run(&mut self, job: Job) {
        if let Err(error) = self.ensure_open(Some(self.creation(&job.request))).await {
            return job.log.refuse(error);
        }
        if self.rt.catalog.load().resume {
            self.resume().await;
        }
        let known = job.request.request_id.as_ref().and_then(|id| {
            let requests = &self.open.as_ref()?.requests;
            requests
                .iter()
                .find(|(known, _)| known == id)
                .map(|(_, run)| *run)
        });
        match (known, &self.open) {
            // It never runs twice (CONV-9).
            (Some(run), Some(open)) => open.replay(run, &job.request, &job.log),
            (None, Some(_)) => self.execute(job, None).await,
            (_, None) => job.log.refuse(Error::ShuttingDown),
        }
    }

    /// Carries on the run that a crash cut off, if one was (STORE-7).
    async fn resume(&mut self) {
        let Some(cut) = self.open.as_mut().and_then(|open| open.interrupted.take()) else {
            return;
        };
        // A delegate's parent has been told already; it is gone.
        let Some(origin) = Origin::parse(&cut.origin) else {
            return;
        };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let request = RunRequest {
            guest: text(&cut.guest),
            cwd: text(&cut.cwd).map(PathBuf::from),
            request_id: text(&cut.request_id),
            origin,
            ..RunRequest::new((*self.shared.key).clone(), "")
        };
        tracing::info!(conversation = %self.shared.key, run = cut.id, "carrying on an interrupted run");
        self.execute(Job::new(request, Arc::default()), Some(cut))
            .await;
    }

    async fn execute(&mut self, job: Job, cut: Option<RunRecord>) {
        if self.rt.shutdown.is_cancelled() {
            return job.log.refuse(Error::ShuttingDown);
        }
        let Some(open) = self.open.as_mut() else {
            return job.log.refuse(Error::ShuttingDown);
        };
        {
            let mut live = self.shared.live();
            live.current = Some(Current {
                log: Arc::clone(&job.log),
                cancel: job.cancel.clone(),
                request_id: job.request.request_id.clone().unwrap_or_default(),
            });
            live.steers = Some(Vec::new());
        }
        let work = run::Work { job, cut };
        if !run::execute(&self.rt, &self.shared, open, work).await {
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

    async fn compact(&mut self, focus: Option<&str>) -> Result<String, Error> {
        self.ensure_open(None).await?;
        let Some(open) = self.open.as_mut() else {
            return Err(Error::ShuttingDown);
        };
        let done = compaction::on_demand(&self.rt, &self.shared, open, focus).await;
        if let Err(Error::Storage(_)) = &done {
            self.open = None;
            self.shared.set_log(None);
        }
        done
    }

    async fn last_end(&mut self) -> Result<RunRecord, Error> {
        self.ensure_open(None).await?;
        let end = self.open.as_ref().and_then(|open| open.last_end.clone());
        end.ok_or_else(|| Error::NothingRunning((*self.shared.key).clone()))
    }

    async fn set(&mut self, change: Change) -> Result<(), Error> {
        self.ensure_open(None).await?;
        let at = apply_change(&self.shared, &change)?;
        self.shared.synced_at_end(at).await?;
        Ok(())
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

/// Appends changed state and lets lists see it. It is safe once the position
/// is.
pub(crate) fn apply_change(shared: &Shared, change: &Change) -> Result<Position, Error> {
    let cwd = change
        .cwd
        .as_ref()
        .map(|cwd| cwd.to_string_lossy().into_owned());
    let record = MetaRecord {
        title: change.title.clone(),
        cwd: cwd.clone(),
        ..MetaRecord::default()
    };
    let at = shared.append(&[Record::Meta(record)])?;
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
    Ok(at)
}

/// The event that tells a client of a run that a crash cut off.
pub(crate) fn interruption(run: u64) -> AgentEvent {
    AgentEvent::Interrupted {
        run,
        reason: "the daemon stopped while this run was going on".into(),
    }
}

impl Open {
    /// Tells a run that is over once more: its answer and its end.
    fn replay(&self, run: u64, request: &RunRequest, log: &RunLog) {
        let agent = request
            .guest
            .clone()
            .unwrap_or_else(|| request.key.agent.to_string());
        let answer = self.answer_of(run);
        let code = match &self.last_end {
            Some(end) if end.id == run => Some(end.code),
            Some(_) | None => answer.is_some().then_some(0),
        };
        log.publish(AgentEvent::Start {
            agent: agent.clone(),
            run,
            model: String::new(),
        });
        if let Some(answer) = answer {
            log.publish(AgentEvent::TextStart);
            log.publish(AgentEvent::Text(answer));
            log.publish(AgentEvent::TextEnd);
        }
        let (code, error) = match code {
            Some(0) => (0, String::new()),
            Some(code) => (
                code,
                format!("run {run} of this request ended with code {code}"),
            ),
            None => (
                500,
                format!(
                    "run {run} of this request gave no answer, or it is archived; see the history"
                ),
            ),
        };
        log.publish(AgentEvent::End(End {
            agent,
            error,
            code,
            ..End::default()
        }));
    }

    /// The last text of a run, if it is in the working history.
    fn answer_of(&self, run: u64) -> Option<String> {
        let at = self.runs.iter().position(|(number, _)| *number == run)?;
        let from = self.runs[at].1;
        let upto = self
            .runs
            .get(at + 1)
            .map_or(self.history.len(), |(_, next)| *next);
        let messages = self.history.get(from..upto)?;
        let last = messages.iter().rev().find(|m| m.role == Role::Assistant)?;
        last.tool_calls.is_empty().then(|| last.content.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_small() {
        assert!(size_of::<Command>() <= 32, "{}", size_of::<Command>());
    }
}
