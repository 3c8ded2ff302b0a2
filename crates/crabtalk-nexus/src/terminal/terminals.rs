//! All agents of one tmux server.
//!
//! Invariant: their tasks end when this is dropped; their programs continue, so that a
//! later supervisor finds them.

use crate::backend::Failure;
use crate::terminal::agent::{Spec, Terminal};
use crate::terminal::server::{Claims, Server, Settings};
use crate::terminal::tmux::Tmux;
use crate::terminal::tmux::windows::{self, Windows};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Agents in windows of a tmux server.
#[derive(Debug)]
pub struct Terminals {
    pub(crate) server: Server,
    _task: JoinSet<()>,
}

impl Terminals {
    /// Finds or starts the server and its session. Without tmux, or with one that
    /// is too old, it fails and says so.
    pub async fn open(settings: Settings) -> Result<Self, Failure> {
        let tmux = Tmux::new(settings.socket.clone(), &settings.state);
        tmux.check().await?;
        tmux.open_session(&settings.session, settings.size).await?;
        let (sender, receiver) = watch::channel(Arc::new(Windows::default()));
        let mut task = JoinSet::new();
        task.spawn(windows::follow(tmux.clone(), sender));
        Ok(Self {
            server: Server {
                tmux,
                settings,
                windows: receiver,
                claims: Claims::default(),
            },
            _task: task,
        })
    }

    /// An agent. Nothing runs until it is launched.
    pub fn agent(&self, spec: Spec) -> Terminal {
        Terminal::new(&self.server, spec)
    }

    /// Closes the session if no agent is left in it.
    pub async fn close(self) -> Result<(), Failure> {
        let Server { tmux, settings, .. } = &self.server;
        tmux.close_session(&settings.session).await
    }
}
