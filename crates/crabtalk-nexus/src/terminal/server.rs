//! A tmux server, as all agents in its windows share it.

use crate::terminal::tmux::Tmux;
use crate::terminal::tmux::windows::Windows;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

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
    /// Columns and lines of a window without a viewer.
    pub size: (u16, u16),
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
            size: (160, 50),
        }
    }
}

/// Which agent writes which transcript.
pub(crate) type Claims = Arc<Mutex<BTreeMap<PathBuf, String>>>;

/// The server as an agent knows it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) tmux: Tmux,
    pub(crate) settings: Settings,
    pub(crate) windows: watch::Receiver<Arc<Windows>>,
    pub(crate) claims: Claims,
}
