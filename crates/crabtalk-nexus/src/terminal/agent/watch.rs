//! The task that observes an agent and reports events.
//!
//! It wakes when tmux says that something happened in the window, when a call
//! left something, and at times: often while a turn is in flight, once in a
//! second otherwise, which reads the length of two files.
//!
//! Invariant: the screen is read only for a reason: a bell, a hook, a call in
//! the transcript, a prompt that waits, a launch.

mod ends;
mod prompts;

use super::Shared;
use super::session::Life;
use crate::backend::{Event, Evidence, Source, What};
use crate::terminal::tmux::look::Look;
use crate::terminal::tmux::windows::{Window, Windows};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Pause between two reads of files while a change is expected.
const BUSY_PAUSE: Duration = Duration::from_millis(60);

/// The same while nothing is.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Delay before a read of the screen: programs ring before they draw.
const LOOKS_MS: [u64; 5] = [0, 60, 200, 600, 1500];

/// Pause between two reads of an open prompt, at first and later.
const PROMPT_PAUSE: Duration = Duration::from_millis(150);
const OLD_PROMPT_PAUSE: Duration = Duration::from_secs(1);

const OLD_PROMPT: Duration = Duration::from_secs(20);

/// Between two events that say only that it works.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// Between two events that say only that it rang: a program may ring without end, and
/// each event is logged.
const BELL_PAUSE: Duration = Duration::from_secs(1);

/// How long a supervisor has to ask what became of the message that was with an
/// agent that it found again.
const ASKED: Duration = Duration::from_secs(10);

struct Watcher {
    shared: Arc<Shared>,
    windows: watch::Receiver<Arc<Windows>>,
    events: mpsc::Sender<Event>,
    /// The last state of the window.
    bells: u64,
    /// Bells that were told, and when.
    told_bells: u64,
    rang: Option<Instant>,
    is_held: bool,
    /// Looks to come, and why.
    looks: VecDeque<Instant>,
    why: Evidence,
    /// A prompt was missing in the last look.
    is_missing: bool,
    prompt_since: Instant,
    ready_since: Option<Instant>,
    progressed: Option<Instant>,
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
        bells: 0,
        told_bells: 0,
        rang: None,
        is_held: false,
        looks: VecDeque::new(),
        why: Evidence::new(Source::Screen, ""),
        is_missing: false,
        prompt_since: Instant::now(),
        ready_since: None,
        progressed: None,
        last_screen: None,
        life: String::new(),
    };
    while watcher.turn().await {}
}

impl Watcher {
    /// One round; whether there is another.
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
            // A record says more than a bell, and precedes it.
            self.shared.catch_up().await;
            self.hinted();
            if let Some(window) = &window {
                self.rung(window).await;
            }
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
            || session.live.is_some()
            || !self.looks.is_empty();
        let until_look = self
            .looks
            .front()
            .map(|at| at.saturating_duration_since(Instant::now()));
        let pause = if expects { BUSY_PAUSE } else { IDLE_PAUSE };
        until_look.map_or(pause, |until| until.min(pause))
    }

    /// Forgets what belongs to an earlier life.
    fn begin(&mut self, life: &Life) {
        if self.life == life.window.life {
            return;
        }
        self.life.clone_from(&life.window.life);
        self.bells = life.window.bells;
        self.told_bells = self.bells;
        self.rang = None;
        self.looks.clear();
        self.is_missing = false;
        self.ready_since = None;
        self.last_screen = None;
    }

    /// The window as tmux told it last; asked for where that cannot be of this
    /// life. None if it is gone.
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
            // One that does not answer says nothing about its windows.
            Err(_) => Some(life.window.clone()),
        }
    }

    /// Reports bells of the window.
    async fn rung(&mut self, window: &Window) {
        if window.bells > self.bells {
            self.bells = window.bells;
            self.why_look(self.bell());
            self.looks.pop_front();
            self.examine(&window.pane).await;
        }
        self.tell_bells();
    }

    fn bell(&self) -> Evidence {
        Evidence::new(Source::Bell, format!("bell {} of this window", self.bells))
    }

    /// Tells how often it rang.
    fn tell_bells(&mut self) {
        let count = self.bells.saturating_sub(self.told_bells);
        if count == 0 {
            return;
        }
        let evidence = self.bell();
        let mut session = self.shared.session();
        let live = session.live.as_ref();
        let prompt = live.filter(|live| live.answer.is_none());
        let prompt = prompt.map(|live| live.prompt.clone());
        if prompt.is_none() && self.rang.is_some_and(|at| at.elapsed() < BELL_PAUSE) {
            return;
        }
        session.tell(What::Bell { count, prompt }, evidence);
        drop(session);
        self.told_bells = self.bells;
        self.rang = Some(Instant::now());
    }

    fn why_look(&mut self, why: Evidence) {
        let now = Instant::now();
        self.looks = LOOKS_MS.map(|ms| now + Duration::from_millis(ms)).into();
        self.why = why;
    }

    /// A reason to look that was read from files.
    fn hinted(&mut self) {
        let hint = self.shared.session().hint.take();
        if let Some(hint) = hint {
            self.why_look(hint);
        }
    }

    async fn look(&mut self, life: &Life) {
        if !life.is_ready {
            return self.wait_until_ready(life).await;
        }
        let now = Instant::now();
        if self.ready_since.is_some_and(|at| at.elapsed() > ASKED) {
            // Nothing was with it.
            self.shared.session().release();
        }
        let (waits, cut_short) = {
            let session = self.shared.session();
            (session.live.is_some(), session.cut_short)
        };
        if self.looks.is_empty() && waits {
            let old = self.prompt_since.elapsed() > OLD_PROMPT;
            self.looks
                .push_back(now + if old { OLD_PROMPT_PAUSE } else { PROMPT_PAUSE });
        }
        if self.looks.is_empty() && self.runs_a_call() {
            // Its prompt may be drawn late.
            self.looks.push_back(now + OLD_PROMPT_PAUSE);
        }
        let due = self.looks.front().is_some_and(|at| *at <= now);
        if due {
            self.looks.pop_front();
            self.examine(&life.window.pane).await;
        }
        if let Some(since) = cut_short {
            self.stands(&life.window.pane, since).await;
        }
    }

    fn runs_a_call(&self) -> bool {
        let session = self.shared.session();
        session.turns.is_busy && !session.turns.calls.is_empty()
    }

    /// Reports readiness once the screen shows it for long enough.
    async fn wait_until_ready(&mut self, life: &Life) {
        let kind = &self.shared.spec.kind;
        let Ok(Some(look)) = self.shared.tmux.look(&life.window.pane).await else {
            return;
        };
        // One that runs has come up before.
        let is_adopted = life.is_found;
        if !is_adopted && !kind.is_ready(&look) {
            self.ready_since = None;
            if Instant::now() > life.deadline {
                self.never_ready(life, &look).await;
            }
            return;
        }
        let since = *self.ready_since.get_or_insert_with(Instant::now);
        if !is_adopted && since.elapsed() < kind.ready.settle() {
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
        if is_adopted {
            // It may have asked while it was not watched.
            self.why_look(Evidence::new(Source::Screen, "it was found"));
        }
    }

    /// Sends the events; whether the receiver is alive.
    async fn flush(&mut self) -> bool {
        loop {
            let Some(event) = self.shared.session().found.pop_front() else {
                return !self.events.is_closed();
            };
            if let What::Progress = event.what {
                let soon = self
                    .progressed
                    .is_some_and(|at| at.elapsed() < PROGRESS_PAUSE);
                if !soon && self.events.try_send(event).is_ok() {
                    self.progressed = Some(Instant::now());
                }
                continue;
            }
            if self.events.send(event).await.is_err() {
                return false;
            }
        }
    }
}
