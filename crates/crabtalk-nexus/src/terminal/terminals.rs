//! All agents of one tmux server.
//!
//! Invariant: their tasks end when this is dropped; their programs continue, so that a
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

/// What all agents of a server have in common.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server.
    pub socket: Option<PathBuf>,
    /// The session in which their windows are.
    pub session: String,
    /// Where each agent has a folder for what its kind brings.
    pub state: PathBuf,
    /// The home below which transcripts lie.
    pub home: PathBuf,
    /// The home of the daemon that chats of kind `crabtalk` speak to.
    pub crabtalk: PathBuf,
}

impl Settings {
    /// The user's own server, a session of the name `nexus`.
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

/// Which agent writes which transcript.
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
    /// Finds or starts the server and its session. Without tmux, or with one that
    /// is too old, it fails and says so.
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

    /// An agent. Nothing runs until it is launched.
    pub fn agent(&self, spec: Spec) -> Terminal {
        Terminal::new(self, spec)
    }

    /// Closes the session if no agent is left in it.
    pub async fn close(self) -> Result<(), Failure> {
        self.tmux.close_session(&self.settings.session).await
    }
}
