//! All agents of one tmux server.
//!
//! Invariant: the agents' tasks end when this is dropped; their programs continue, so that a
//! later supervisor finds them.

use crate::backend::Failure;
use crate::terminal::agent::{Spec, Terminal};
use crate::terminal::tmux::Tmux;
use crate::terminal::tmux::windows::{self, Windows};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Settings shared by all agents of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The socket of the tmux server.
    pub socket: Option<PathBuf>,
    /// The session of their windows.
    pub session: String,
    /// The folder with a subfolder per agent for the files of its kind.
    pub state: PathBuf,
    /// The home folder in which transcripts are.
    pub home: PathBuf,
    /// The home of the daemon to which chats of kind `crabtalk` connect.
    pub crabtalk: PathBuf,
}

impl Settings {
    /// Settings for the user's own server and a session named `nexus`.
    pub fn new(home: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            socket: None,
            session: "nexus".into(),
            state: state.into(),
            crabtalk: home.join(".crabtalk"),
            home,
        }
    }
}

/// The owner of each transcript.
pub(crate) type Claims = Arc<Mutex<BTreeMap<PathBuf, String>>>;

/// Agents in windows of a tmux server.
#[derive(Debug)]
pub struct Terminals {
    pub(crate) tmux: Tmux,
    pub(crate) settings: Settings,
    pub(crate) windows: watch::Receiver<Arc<Windows>>,
    pub(crate) claims: Claims,
    _task: JoinSet<()>,
}

impl Terminals {
    /// Finds or starts the server and its session. Fails if tmux is missing
    /// or too old.
    pub async fn open(settings: Settings) -> Result<Self, Failure> {
        let tmux = Tmux::new(settings.socket.clone(), &settings.state);
        tmux.check().await?;
        tmux.open_session(&settings.session).await?;
        let (sender, receiver) = watch::channel(Arc::new(Windows::default()));
        let mut task = JoinSet::new();
        task.spawn(windows::follow(tmux.clone(), sender));
        Ok(Self {
            tmux,
            settings,
            windows: receiver,
            claims: Claims::default(),
            _task: task,
        })
    }

    /// Creates an agent; nothing runs until it is launched.
    pub fn agent(&self, spec: Spec) -> Terminal {
        Terminal::new(self, spec)
    }

    /// Closes the session if it contains no agent.
    pub async fn close(self) -> Result<(), Failure> {
        self.tmux.close_session(&self.settings.session).await
    }
}
