//! All agents of one tmux server.
//!
//! Invariant: whatever runs for them runs in tasks that end when this is
//! dropped; their programs go on then, so that a supervisor that comes back
//! finds them.

use crate::agent::{Spec, Terminal};
use crate::error::Error;
use crate::tmux::Tmux;
use crate::tmux::control::{self, Windows};
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
    /// Columns and lines of a window that nobody looks at.
    pub size: (u16, u16),
}

impl Settings {
    /// The user's own server, a session of the name `nexus`.
    pub fn new(home: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Self {
        Self {
            socket: None,
            session: "nexus".into(),
            state: state.into(),
            home: home.into(),
            size: (160, 50),
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
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let tmux = Tmux::new(settings.socket.clone());
        tmux.check().await?;
        tmux.open_session(&settings.session, settings.size).await?;
        tmux.set_hooks().await?;
        let (sender, windows) = watch::channel(Arc::new(Windows::default()));
        let mut task = JoinSet::new();
        task.spawn(control::follow(
            tmux.clone(),
            settings.session.clone(),
            sender,
        ));
        Ok(Self {
            tmux,
            settings,
            windows,
            claims: Claims::default(),
            _task: task,
        })
    }

    /// An agent. Nothing runs until it is launched.
    pub fn agent(&self, spec: Spec) -> Terminal {
        Terminal::new(self, spec)
    }

    /// Takes away what was set in the server, and the session if no agent is left
    /// in it. What a user hooked stays.
    pub async fn close(self) -> Result<(), Error> {
        let hooks = self.tmux.unset_hooks().await;
        let session = self.tmux.close_session(&self.settings.session).await;
        hooks.and(session)
    }
}
