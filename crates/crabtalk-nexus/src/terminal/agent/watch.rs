//! The task that observes an agent and reports events.
//!
//! It wakes when tmux reports a change of the window, when a call
//! queued an event, and periodically: often during a turn, once per
//! second otherwise, which reads the length of two files.
//!
//! Events come from the transcript; the screen is read only for prompts and readiness.

mod ends;
mod prompts;

use super::Shared;
use super::session::Life;
use crate::backend::{Event, Evidence, Source, What};
use crate::terminal::tmux::look::Look;
use crate::terminal::tmux::windows::{Window, Windows};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Pause between two reads of files while a change is expected.
const BUSY_PAUSE: Duration = Duration::from_millis(60);

/// Pause between two reads of files at other times.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Pause between two reads of the screen while a prompt may open, and at other times.
const LOOK_PAUSE: Duration = Duration::from_millis(400);
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// Time for a supervisor to ask about the message in delivery to an
/// agent that was found again.
const ASKED: Duration = Duration::from_secs(10);

struct Watcher {
    shared: Arc<Shared>,
    windows: watch::Receiver<Arc<Windows>>,
    events: mpsc::Sender<Event>,
    is_held: bool,
    next_look: Instant,
    /// Whether the prompt was missing in the last read.
    is_missing: bool,
    ready_since: Option<Instant>,
    last_screen: Option<(Look, Instant)>,
    life: String,
}

/// Watches until the agent is dropped.
pub(super) async fn watch(
    shared: Arc<Shared>,
    windows: watch::Receiver<Arc<Windows>>,
    events: mpsc::Sender<Event>,
) {
    let mut watcher = Watcher {
        shared,
        windows,
        events,
        is_held: false,
        next_look: Instant::now(),
        is_missing: false,
        ready_since: None,
        last_screen: None,
        life: String::new(),
    };
    while watcher.turn().await {}
}

impl Watcher {
    /// Does one round; returns whether to continue.
    async fn turn(&mut self) -> bool {
        let pause = self.pause();
        tokio::select! {
            changed = self.windows.changed() => if changed.is_err() {
                return false;
            },
            () = self.shared.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
        let life = self.shared.session().life.clone();
        if let Some(life) = life.filter(|life| !life.is_over) {
            self.begin(&life);
            let window = self.now(&life).await;
            self.shared.catch_up();
            let is_dead = window.is_none_or(|window| window.is_dead);
            if is_dead {
                self.died(&life).await;
            } else {
                self.look(&life).await;
            }
        }
        self.flush().await
    }

    fn pause(&self) -> Duration {
        let session = self.shared.session();
        let Some(life) = session.life.as_ref().filter(|life| !life.is_over) else {
            return IDLE_PAUSE;
        };
        let expects = !life.is_ready
            || session.turns.is_busy
            || session.expects_message()
            || session.is_compressing
            || session.live.is_some();
        if expects { BUSY_PAUSE } else { IDLE_PAUSE }
    }

    /// Resets the state for a new life.
    fn begin(&mut self, life: &Life) {
        if self.life == life.window.life {
            return;
        }
        self.life.clone_from(&life.window.life);
        self.next_look = Instant::now();
        self.is_missing = false;
        self.ready_since = None;
        self.last_screen = None;
    }

    /// The window as last reported by tmux, or queried if that report may be of an earlier
    /// life. `None` if it is gone.
    async fn now(&mut self, life: &Life) -> Option<Window> {
        let told = self.windows.borrow_and_update().clone();
        let is_held = told.viewed.contains(&life.window.window);
        if is_held != self.is_held {
            self.is_held = is_held;
            let detail = if is_held {
                "a client shows the window"
            } else {
                "no client shows it"
            };
            let what = What::Held { held: is_held };
            self.shared
                .session()
                .tell(what, Evidence::new(Source::Screen, detail));
        }
        let name = &self.shared.spec.name;
        let known = told
            .of(name)
            .filter(|w| w.life == life.window.life && w.pid == life.window.pid);
        if let Some(known) = known {
            return Some(known.clone());
        }
        match self.shared.tmux.window_of(name).await {
            Ok(Some(window)) if window.life == life.window.life => Some(window),
            Ok(_) => None,
            // If tmux does not answer, the window is assumed to exist.
            Err(_) => Some(life.window.clone()),
        }
    }

    async fn look(&mut self, life: &Life) {
        if !life.is_ready {
            return self.wait_until_ready(life).await;
        }
        let now = Instant::now();
        if self.ready_since.is_some_and(|at| at.elapsed() > ASKED) {
            // No message was in delivery.
            self.shared.session().release();
        }
        let (may_ask, cut_short) = {
            let session = self.shared.session();
            let may_ask = session.turns.is_busy || session.live.is_some() || !session.is_followed();
            (may_ask, session.cut_short)
        };
        let pause = if may_ask { LOOK_PAUSE } else { LOOK_SELDOM };
        if now >= self.next_look || now + pause < self.next_look {
            self.next_look = now + pause;
            self.examine(&life.window.pane).await;
        }
        if let Some(since) = cut_short {
            self.stands(&life.window.pane, since).await;
        }
    }

    /// Reports readiness after the screen has shown it long enough.
    async fn wait_until_ready(&mut self, life: &Life) {
        let kind = &self.shared.spec.kind;
        let Ok(Some(look)) = self.shared.tmux.look(&life.window.pane).await else {
            return;
        };
        // A running agent has been ready before.
        let is_adopted = life.is_found;
        if !is_adopted && !kind.is_ready(&look) {
            self.ready_since = None;
            if Instant::now() > life.deadline {
                self.never_ready(life, &look).await;
            }
            return;
        }
        let since = *self.ready_since.get_or_insert_with(Instant::now);
        if !is_adopted && since.elapsed() < Duration::from_millis(kind.ready.settle_ms) {
            return;
        }
        {
            let mut session = self.shared.session();
            if let Some(life) = &mut session.life {
                life.is_ready = true;
            }
            let what = What::Ready {
                session: session.name.clone(),
                busy: session.turns.is_busy,
            };
            session.tell(what, Evidence::new(Source::Screen, "its composer is there"));
        }
    }

    /// Sends the events; returns whether the receiver exists.
    async fn flush(&mut self) -> bool {
        loop {
            let Some(event) = self.shared.session().found.pop_front() else {
                return !self.events.is_closed();
            };
            if self.events.send(event).await.is_err() {
                return false;
            }
        }
    }
}
