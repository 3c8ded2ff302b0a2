//! One server: its published state, waiting for it, and its task.
//!
//! The task connects at once, or on demand if the server is a program; lists the tools;
//! pings; detects the end; and reconnects with growing delays.
//!
//! Invariants: only that task changes the state; waiting for a server is bounded.

mod life;
mod pace;
mod serve;
mod status;

pub(crate) use life::ServerTask;
pub use pace::Pace;
pub use status::{Phase, ServerStatus};

use crate::link::Link;
use crate::list::Tools;
use crate::settings::Settings;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// The state that the task publishes.
#[derive(Clone)]
pub(crate) struct Now {
    pub(crate) phase: Phase,
    pub(crate) error: String,
    pub(crate) wants_login: bool,
    pub(crate) since: Instant,
    pub(crate) tools: Arc<Tools>,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) server: String,
    pub(crate) protocol: String,
    pub(crate) connected: u32,
    /// Finished attempts to connect.
    pub(crate) tried: u32,
}

/// The shared handle of a server.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    now: watch::Sender<Now>,
    wanted: Notify,
    /// Notified when the server may be gone.
    pub(crate) doubt: Notify,
    used: Mutex<Instant>,
    pub(crate) cancel: CancellationToken,
}

impl Server {
    /// Creates a server before its first connection. `tools` are those of its last run.
    pub(crate) fn new(
        settings: Settings,
        tools: Tools,
        connected: u32,
        cancel: CancellationToken,
    ) -> Self {
        let phase = match (settings.enabled, settings.is_lazy()) {
            (false, _) => Phase::Off,
            _ if !settings.unusable.is_empty() => Phase::Failed,
            (true, true) => Phase::Idle,
            (true, false) => Phase::Connecting,
        };
        let now = Now {
            phase,
            error: settings.unusable.clone(),
            wants_login: false,
            since: Instant::now(),
            tools: Arc::new(tools),
            link: None,
            server: String::new(),
            protocol: String::new(),
            connected,
            tried: 0,
        };
        Self {
            settings,
            now: watch::Sender::new(now),
            wanted: Notify::new(),
            doubt: Notify::new(),
            used: Mutex::new(Instant::now()),
            cancel,
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.now.borrow().clone()
    }

    /// The offered tools.
    pub(crate) fn tools(&self) -> Arc<Tools> {
        Arc::clone(&self.now.borrow().tools)
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(|now| {
            let before = now.phase;
            change(now);
            if now.phase != before {
                now.since = Instant::now();
            }
        });
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn use_now(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Requests a connection.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Discards requests that an ended connection satisfied.
    fn forget_wishes(&self) {
        let _ = self.wanted.notified().now_or_never();
    }

    /// Waits for a connection and starts a program if needed, within the timeout of its start.
    pub(crate) async fn link(&self, pace: &Pace) -> Result<Arc<Link>, String> {
        let mut now = self.now.subscribe();
        // Calls do not keep a hanging program alive.
        if now.borrow().phase != Phase::Hanging {
            self.use_now();
        }
        let before = now.borrow().tried;
        self.want();
        let found = now.wait_for(|now| match now.phase {
            Phase::Connected => now.link.is_some(),
            Phase::Hanging | Phase::Off => true,
            Phase::Failed => !self.settings.is_lazy() || now.tried != before,
            Phase::Idle => false,
            Phase::Connecting => !self.settings.is_lazy(),
        });
        let name = &self.settings.name;
        let found = timeout(pace.start + pace.list, found).await;
        let found = match &found {
            Ok(Ok(now)) => now,
            Ok(Err(_)) | Err(_) => return Err(format!("{name} did not start in time")),
        };
        match (found.phase, &found.link) {
            (Phase::Connected, Some(link)) => Ok(Arc::clone(link)),
            (Phase::Hanging, _) => Err(format!(
                "{name} hangs: it does not answer pings; try again when it does"
            )),
            (Phase::Off, _) => Err(format!("{name} is switched off")),
            _ if found.error.is_empty() => Err(format!("{name} is not connected")),
            _ => Err(format!("{name} is not connected: {}", found.error)),
        }
    }

    /// Waits for the first connection attempt if the tools are unknown.
    pub(crate) async fn first_look(&self) {
        let mut now = self.now.subscribe();
        if now.borrow().tried > 0 || !now.borrow().tools.known.is_empty() {
            return;
        }
        self.want();
        // The sender lives as long as this handle.
        let _ = now.wait_for(|now| now.tried > 0).await;
    }
}
