//! All agents of one tmux server.
//!
//! Invariant: their tasks end when this is dropped; their programs continue, so that a
//! later supervisor finds them.

use crate::terminal::agent::{Spec, Terminal};
use crate::terminal::error::Error;
use crate::terminal::server::{Claims, Server, Settings};
use crate::terminal::tmux::Tmux;
use crate::terminal::tmux::windows::{self, Windows};
use std::fs::File;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Agents in windows of a tmux server.
#[derive(Debug)]
pub struct Terminals {
    pub(crate) server: Server,
    _task: JoinSet<()>,
    /// Says to other teams that this one works here.
    _held: Option<File>,
}

impl Terminals {
    /// Finds or starts the server and its session. Without tmux, or with one that
    /// is too old, or where another team works in it, it fails and says so.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let tmux = Tmux::new(settings.socket.clone(), settings.state.clone());
        tmux.check().await?;
        let held = tmux.hold()?;
        tmux.open_session(&settings.session, settings.size).await?;
        tmux.claim().await?;
        tmux.set_hooks().await?;
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
            _held: held,
        })
    }

    /// An agent. Nothing runs until it is launched.
    pub fn agent(&self, spec: Spec) -> Terminal {
        Terminal::new(&self.server, spec)
    }

    /// Takes away what was set in the server, and the session if no agent is left
    /// in it. Hooks of the user stay.
    pub async fn close(self) -> Result<(), Error> {
        let Server { tmux, settings, .. } = &self.server;
        let hooks = tmux.unset_hooks().await;
        let session = tmux.close_session(&settings.session).await;
        hooks.and(session)
    }
}
