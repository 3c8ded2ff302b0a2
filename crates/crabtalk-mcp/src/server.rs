//! One server: what everybody sees of it, how they wait for it, and the task that
//! owns it.
//!
//! The task connects at once, or, a program, when somebody wants it; asks for the
//! tools; pings; notices the end; and connects again after a pause that grows.
//!
//! Invariants: only that task changes what is known of its server; whoever waits
//! for the server waits for a bounded time.

mod life;
mod pace;
mod serve;
mod status;

pub(crate) use life::Work;
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

/// What its task has found out.
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
    /// Attempts to connect that have come to an end.
    pub(crate) tried: u32,
}

/// What everybody sees of a server.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    now: watch::Sender<Now>,
    wanted: Notify,
    /// Somebody has seen that it may be gone.
    pub(crate) doubt: Notify,
    used: Mutex<Instant>,
    pub(crate) cancel: CancellationToken,
}

impl Server {
    /// A server that nobody has looked at. `tools` are those that it had when
    /// it ran last.
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

    /// Its tools, for as long as they are on offer.
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

    /// Wants it to be connected.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// What was wanted of a connection that is over was had.
    fn forget_wishes(&self) {
        let _ = self.wanted.notified().now_or_never();
    }

    /// Its link; a program is started for it. Waits for as long as that may take.
    pub(crate) async fn link(&self, pace: &Pace) -> Result<Arc<Link>, String> {
        let mut now = self.now.subscribe();
        // One that hangs shall be at rest once, however many go on asking.
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
                "{name} hangs: it does not answer pings; calls go to it again when it does"
            )),
            (Phase::Off, _) => Err(format!("{name} is switched off")),
            _ if found.error.is_empty() => Err(format!("{name} is not connected")),
            _ => Err(format!("{name} is not connected: {}", found.error)),
        }
    }

    /// Waits until it was tried once, for programs whose tools nobody knows.
    pub(crate) async fn first_look(&self) {
        let mut now = self.now.subscribe();
        if now.borrow().tried > 0 || !now.borrow().tools.known.is_empty() {
            return;
        }
        self.want();
        // The sender is ours.
        let _ = now.wait_for(|now| now.tried > 0).await;
    }
}
