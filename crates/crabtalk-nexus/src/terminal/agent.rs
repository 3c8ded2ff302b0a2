//! One agent in a window: calls in, events out.
//!
//! ```text
//! session   the state read from its transcript and hooks
//! watch     the task that reports events
//! launch    starts the agent, continues a session, or reconnects
//! sandbox   its program in the sandbox
//! submit    types messages and commands
//! answer    answers prompts
//! end       cancels turns, compresses, ends the agent
//! ```
//!
//! Invariants: the session state is read under one lock that is not held across an
//! await; events are reported in the order in which they were found; a call that is
//! dropped leaves at most a draft, which the next call removes.

mod answer;
mod end;
mod launch;
mod look;
mod sandbox;
mod session;
mod submit;
mod watch;

use crate::backend::{
    Answered, Backend, Call, Compressed, Event, Events, Failure, Launch, Look, Mark, Probe, Prompt,
    Reply, Submission, Submitted,
};
use crate::terminal::Terminals;
use crate::terminal::kind::Kind;
use crate::terminal::tmux::Tmux;
use crate::terminal::tmux::windows::{Window, Windows};
use crabtalk_guardian::GuardianCommand;
pub use sandbox::Sandbox;
use session::Session;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Capacity of the event queue. A hanging supervisor blocks the watchers of its
/// agents, not the agents.
const EVENTS: usize = 256;

/// The configuration of an agent.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The name, unique in the tmux session.
    pub name: String,
    /// The kind of agent.
    pub kind: Kind,
    /// The working folder.
    pub folder: PathBuf,
    /// Variables added after those of the kind.
    pub env: BTreeMap<String, String>,
    /// The sandbox of the program, if configured.
    pub sandbox: Option<Sandbox>,
    /// Starts a program outside the sandbox with the guardian's mark, so that the
    /// sockets of NEXUS and the daemon refuse its processes.
    pub marker: Option<GuardianCommand>,
}

/// Converts a name to lower-case letters, digits and dashes, as in names of conversation logs.
fn slug(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// State shared by calls and the watcher.
pub(crate) struct Shared {
    pub(crate) tmux: Tmux,
    /// The tmux session.
    pub(crate) at: String,
    pub(crate) spec: Spec,
    /// The folder of the kind's files.
    pub(crate) state: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) crabtalk: PathBuf,
    session: Mutex<Session>,
    /// Wakes the watcher at once.
    pub(crate) wake: Notify,
}

impl Shared {
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        // The data is valid even after a panic.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads new records of transcript and hooks.
    pub(crate) fn catch_up(&self) {
        if self.session().catch_up() {
            self.wake.notify_one();
        }
    }

    /// The agent's running window.
    pub(crate) fn running(&self) -> Result<Window, Failure> {
        let session = self.session();
        let life = session.life.as_ref();
        let window = life
            .filter(|life| !life.is_over)
            .map(|life| life.window.clone());
        window.ok_or_else(|| Failure::NotRunning(self.spec.name.clone()))
    }
}

/// An agent in a tmux window.
pub struct Terminal {
    shared: Arc<Shared>,
    windows: tokio::sync::watch::Receiver<Arc<Windows>>,
    events: Mutex<Option<mpsc::Receiver<Event>>>,
    _task: JoinSet<()>,
}

impl Terminal {
    pub(crate) fn new(server: &Terminals, spec: Spec) -> Self {
        let settings = &server.settings;
        let state = settings.state.join(&spec.name);
        let home = spec
            .env
            .get("HOME")
            .map_or_else(|| settings.home.clone(), PathBuf::from);
        let crabtalk = spec.env.get("CRABTALK_HOME");
        let crabtalk = crabtalk.map_or_else(|| settings.crabtalk.clone(), PathBuf::from);
        let shared = Arc::new(Shared {
            tmux: server.tmux.clone(),
            at: settings.session.clone(),
            session: Mutex::new(Session::new(
                &spec,
                (&home, &crabtalk),
                server.claims.clone(),
            )),
            state,
            home,
            crabtalk,
            spec,
            wake: Notify::new(),
        });
        let (sender, receiver) = mpsc::channel(EVENTS);
        let mut task = JoinSet::new();
        let windows = server.windows.clone();
        task.spawn(watch::watch(shared.clone(), windows.clone(), sender));
        Self {
            shared,
            windows,
            events: Mutex::new(Some(receiver)),
            _task: task,
        }
    }

    /// The shared state, for tests.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether a person has its window open.
    fn is_held(&self, window: &Window) -> bool {
        self.windows.borrow().viewed.contains(&window.window)
    }
}

impl Backend for Terminal {
    fn events(&self) -> Events {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let next = async |mut receiver: Option<mpsc::Receiver<Event>>| {
            let event = receiver.as_mut()?.recv().await?;
            Some((event, receiver))
        };
        Box::pin(futures_util::stream::unfold(events.take(), next))
    }

    fn launch(&self, launch: Launch) -> Call<'_, ()> {
        Box::pin(self.start(launch))
    }

    fn mark(&self) -> Call<'_, Mark> {
        Box::pin(async {
            self.shared.catch_up();
            Ok(self.shared.session().mark())
        })
    }

    fn submit(&self, message: Submission) -> Call<'_, Submitted> {
        Box::pin(self.give(message))
    }

    fn reply<'a>(&'a self, prompt: &'a Prompt, reply: &'a Reply) -> Call<'a, Answered> {
        Box::pin(self.answer_by(prompt, reply))
    }

    fn probe(&self) -> Call<'_, Probe> {
        Box::pin(self.probed())
    }

    fn compress(&self) -> Call<'_, Compressed> {
        Box::pin(self.compressed(self.shared.spec.kind.commands.compress))
    }

    fn cancel(&self) -> Call<'_, bool> {
        Box::pin(self.cancelled())
    }

    fn stop(&self) -> Call<'_, ()> {
        Box::pin(self.stopped())
    }

    fn look(&self) -> Call<'_, Look> {
        Box::pin(self.seen())
    }
}
