//! The task of a conversation.
//!
//! Invariants: only this task and its run append to the history, so its order is total;
//! memory equals the disk, and after a failed write the memory is dropped and read
//! again; the task lives while it has work and [`LINGER`] longer.

mod carry_on;
mod go_back;
mod replay;

pub use go_back::Rewound;

use crate::command::{Change, Command, Job};
use crate::inner::Inner;
use crate::open::{Cut, OpenConversation};
use crate::registry::{Live, Shared};
use crate::request::RunRequest;
use crate::run::{self, Ending, Outcome};
use crate::{Error, compaction};
use crabtalk_domain::storage::{self, NewConversation, Opened, RunRecord};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long an idle conversation stays in memory: enough for a person's next message or a
/// gateway's burst.
const LINGER: Duration = Duration::from_secs(5);

/// The state of the task.
struct Conversation {
    rt: Arc<Inner>,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    open: Option<OpenConversation>,
}

/// Starts the task of a conversation.
pub(crate) fn start(rt: &Arc<Inner>, shared: Arc<Shared>, commands: mpsc::Receiver<Command>) {
    let conversation = Conversation::new(Arc::clone(rt), shared, commands);
    rt.tasks.spawn(Box::new(conversation).work());
}

impl Conversation {
    fn new(rt: Arc<Inner>, shared: Arc<Shared>, commands: mpsc::Receiver<Command>) -> Self {
        Self {
            rt,
            shared,
            commands,
            open: None,
        }
    }

    /// Handles commands until none has arrived for [`LINGER`].
    async fn work(mut self: Box<Self>) {
        let shutdown = self.rt.shutdown.clone();
        loop {
            let next = tokio::select! {
                biased;
                () = shutdown.cancelled() => None,
                next = tokio::time::timeout(LINGER, self.commands.recv()) => next.ok().flatten(),
            };
            match next {
                Some(command) => self.handle_guarded(command).await,
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

    /// Handles a command. A panic outside a run fails only that command.
    async fn handle_guarded(&mut self, command: Command) {
        let log = command.job().map(|job| Arc::clone(&job.log));
        let handled = AssertUnwindSafe(self.handle(command)).catch_unwind().await;
        if handled.is_err() {
            tracing::error!(conversation = %self.shared.key, "a command panicked; reloading the conversation");
            self.forget();
            self.shared.live().compacting = None;
            self.shared.forget_current();
            if let Some(log) = log {
                log.refuse(Error::Panicked);
            }
        }
    }

    /// Rare commands are boxed to keep the future small.
    async fn handle(&mut self, command: Command) {
        match command {
            Command::Run(job) => {
                if self.shared.begin(&job) {
                    self.run(job).await;
                }
            }
            Command::Compact { focus, reply } => {
                // The receiver may be gone.
                let _ = reply.send(Box::pin(self.compact(focus.as_deref())).await);
            }
            Command::StartFresh { reply } => {
                let _ = reply.send(Box::pin(self.start_fresh()).await);
            }
            Command::Rewind { to, reply } => {
                let _ = reply.send(Box::pin(self.rewind(to)).await);
            }
            Command::Reopen { archive, reply } => {
                let _ = reply.send(Box::pin(self.reopen(archive)).await);
            }
            Command::Set { change, reply } => {
                let _ = reply.send(Box::pin(self.set(*change)).await);
            }
            Command::Remove { reply } => {
                let _ = reply.send(Box::pin(self.remove()).await);
            }
            Command::LastEnd { reply } => {
                let _ = reply.send(Box::pin(self.last_end()).await);
            }
            Command::Outcome { request_id, reply } => {
                let _ = reply.send(Box::pin(self.outcome(&request_id)).await);
            }
            Command::Resume => {
                if let Err(error) = Box::pin(self.carry_on()).await {
                    tracing::warn!(conversation = %self.shared.key, %error, "cannot resume a run");
                }
            }
        }
    }

    /// Reads the conversation unless it is in memory.
    async fn ensure_open(&mut self, create: Option<NewConversation>) -> Result<(), Error> {
        if self.open.is_some() && self.shared.is_current().await {
            return Ok(());
        }
        Box::pin(self.load(create)).await
    }

    async fn load(&mut self, create: Option<NewConversation>) -> Result<(), Error> {
        if self.open.take().is_some() {
            // The log on disk takes precedence.
            tracing::warn!(conversation = %self.shared.key, "another program changed the log; reloading the conversation");
            self.shared.set_log(None);
        }
        let opened = self.read_log(create).await?;
        let cut = Cut::by_crash(&opened, self.rt.catalog.load().resume);
        let (open, cut_off) = OpenConversation::take(&self.rt, &self.shared, opened, cut).await?;
        self.open = Some(open);
        self.tell_cut_off(cut_off).await;
        Ok(())
    }

    /// Reports an interrupted run to the listeners for ends.
    async fn tell_cut_off(&self, cut_off: Option<RunRecord>) {
        if let Some(cut_off) = cut_off {
            let key = &self.shared.key;
            self.rt.ends.tell_interrupted(key, &cut_off, None).await;
        }
    }

    /// Opens the log. A disk that hangs does not delay the shutdown.
    async fn read_log(&self, create: Option<NewConversation>) -> Result<Opened, Error> {
        let key = &self.shared.key;
        let opened = tokio::select! {
            biased;
            () = self.rt.shutdown.cancelled() => return Err(Error::ShuttingDown),
            opened = self.rt.storage.open(key, create) => opened?,
        };
        opened.ok_or_else(|| Error::NoConversation((**key).clone()))
    }

    /// Drops the state in memory; the next command reads the log again.
    fn forget(&mut self) {
        self.open = None;
        self.shared.set_log(None);
    }

    /// Executes one run, whose readers always receive its end.
    async fn run(&mut self, job: Box<Job>) {
        let log = Arc::clone(&job.log);
        if let Err(error) = self.execute_or_tell_again(job).await {
            self.shared.forget_current();
            log.refuse(error);
        }
    }

    async fn execute_or_tell_again(&mut self, job: Box<Job>) -> Result<(), Error> {
        self.ensure_open(Some(self.creation(&job.request))).await?;
        if self.has_resumable() {
            self.shared.step_back(&job);
            let resumed = Box::pin(self.carry_on()).await;
            let is_withdrawn = !self.shared.begin(&job);
            resumed?;
            if is_withdrawn {
                return Ok(());
            }
        }
        let open = self.open.as_ref().ok_or(Error::ShuttingDown)?;
        match job
            .request
            .request_id
            .as_deref()
            .and_then(|id| open.run_of(id))
        {
            // A request is never executed twice (CONV-9).
            Some(run) => Box::pin(self.tell_again(run, &job)).await?,
            None => self.execute(job, None).await,
        }
        Ok(())
    }

    /// Replays a finished run from the log.
    async fn tell_again(&mut self, run: u64, job: &Job) -> Result<(), Error> {
        let told = self.rt.storage.trace(&self.shared.key, run).await?;
        // The earlier daemon may have been killed before the end was
        // durable.
        let end = self.shared.append(&[]).await?;
        self.shared.synced_at_end(end).await?;
        // The run leaves the registry before readers get its End.
        self.shared.forget_current();
        replay::tell(run, told.unwrap_or_default(), job);
        Ok(())
    }

    async fn execute(&mut self, job: Box<Job>, cut: Option<Box<RunRecord>>) {
        let log = Arc::clone(&job.log);
        let open = self.open.as_mut();
        let Some(open) = open.filter(|_| !self.rt.shutdown.is_cancelled()) else {
            self.shared.forget_current();
            return log.refuse(Error::ShuttingDown);
        };
        let work = run::RunTask { job, cut };
        match run::execute(&self.rt, &self.shared, open, work).await {
            Outcome::Intact => {}
            Outcome::Unsure => self.forget(),
            Outcome::Panicked(ending) => Box::pin(self.close_panicked(&ending)).await,
        }
    }

    /// Records the end of a run that panicked, then reads the log again.
    async fn close_panicked(&mut self, ending: &Ending) {
        self.forget();
        self.shared.live().steers = None;
        let closed = async {
            let opened = self.read_log(None).await?;
            let cut = Cut::by_panic(&opened, ending.run());
            // Steering is closed before the log is read, so that the log
            // has every accepted message.
            let (open, cut_off) =
                OpenConversation::take(&self.rt, &self.shared, opened, cut).await?;
            let end = self.shared.append(&[]).await?;
            self.open = Some(open);
            self.tell_cut_off(cut_off).await;
            Ok::<_, Error>(self.shared.synced_at_end(end).await?)
        };
        if let Err(error) = closed.await {
            tracing::warn!(conversation = %self.shared.key, %error, "cannot write the end of a run to the log");
            self.forget();
        }
        ending.tell_of_panic(&self.shared).await;
    }

    /// The parameters of a new conversation (CONV-6): the folder to use if neither it nor
    /// its agent has one.
    fn creation(&self, request: &RunRequest) -> NewConversation {
        let catalog = self.rt.catalog.load();
        let cwd = request
            .cwd
            .clone()
            .or_else(|| catalog.user_home.clone())
            .unwrap_or_else(|| PathBuf::from("/"));
        NewConversation {
            created_at: self.rt.now(),
            cwd: cwd.to_string_lossy().into_owned(),
        }
    }

    /// Compacts on demand; a kill or a shutdown cancels it.
    async fn compact(&mut self, focus: Option<&str>) -> Result<String, Error> {
        self.carry_on().await?;
        let cancel = CancellationToken::new();
        self.shared.begin_compaction(cancel.clone());
        let done = self.compact_until(&cancel, focus).await;
        self.shared.live().compacting = None;
        if let Err(Error::Storage(_) | Error::Panicked) = &done {
            self.forget();
        }
        done
    }

    /// Archives the working history and begins an empty one (CONV-11).
    async fn start_fresh(&mut self) -> Result<String, Error> {
        self.carry_on().await?;
        let Some(open) = self.open.as_mut() else {
            return Err(Error::ShuttingDown);
        };
        let done = compaction::start_fresh(&self.rt, &self.shared, open).await;
        if let Err(Error::Storage(_)) = &done {
            self.forget();
        }
        done
    }

    async fn compact_until(
        &mut self,
        cancel: &CancellationToken,
        focus: Option<&str>,
    ) -> Result<String, Error> {
        let Some(open) = self.open.as_mut() else {
            return Err(Error::ShuttingDown);
        };
        let work = compaction::on_demand(&self.rt, &self.shared, open, focus, cancel);
        let done = AssertUnwindSafe(Box::pin(work)).catch_unwind().await;
        done.unwrap_or_else(|_| {
            tracing::error!(conversation = %self.shared.key, "a compaction panicked");
            Err(Error::Panicked)
        })
    }

    async fn set(&mut self, change: Change) -> Result<(), Error> {
        self.ensure_open(None).await?;
        let at = self.shared.apply(&change).await?;
        self.shared.synced_at_end(at).await?;
        Ok(())
    }

    async fn remove(&mut self) -> Result<(), Error> {
        self.forget();
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
