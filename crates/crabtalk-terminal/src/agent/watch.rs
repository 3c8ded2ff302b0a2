//! The task that looks at an agent, and tells.
//!
//! It wakes when tmux says that something happened in the window, when a call
//! left something, and at times: often while a turn is in flight, once in a
//! second otherwise, when it costs a look at the length of two files.
//!
//! Invariant: the screen is looked at only for a reason: a bell, a hook, a call in
//! the transcript, a prompt that waits, a launch.

use super::Shared;
use super::session::{Life, Live};
use crate::kind::PromptRule;
use crate::kind::screen::Shown;
use crate::processes;
use crate::tmux::control::{Window, Windows};
use crate::tmux::look::Look;
use crate::tmux::text::squeezed;
use crabtalk_backend::{Event, Evidence, Exit, Prompt, Source, What};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Until tmux says how a program ended.
const TOLD_HOW: Duration = Duration::from_secs(2);

/// Between two looks at files while something is expected there.
const BUSY_PAUSE: Duration = Duration::from_millis(60);

/// The same while nothing is.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// After a reason to look at the screen: programs ring before they draw.
const LOOKS_MS: [u64; 5] = [0, 60, 200, 600, 1500];

/// Between two looks at a prompt that waits, soon and after a while.
const PROMPT_PAUSE: Duration = Duration::from_millis(150);
const OLD_PROMPT_PAUSE: Duration = Duration::from_secs(1);

/// When a prompt is an old one.
const OLD_PROMPT: Duration = Duration::from_secs(20);

/// Between two events that say only that it works.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// A screen that stood so long after its turn was cut short stands.
const CUT_SHORT: Duration = Duration::from_millis(1500);

/// How long a supervisor has to ask what became of the message that was with an
/// agent that it found again.
const ASKED: Duration = Duration::from_secs(10);

/// What of a screen is told of an agent that died.
const SAID_LINES: usize = 8;

struct Watcher {
    shared: Arc<Shared>,
    windows: watch::Receiver<Arc<Windows>>,
    events: mpsc::Sender<Event>,
    /// What was seen of the window last.
    bells: u64,
    silences: u64,
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
        silences: 0,
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
            // What is written says more than a bell, and came before it.
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
        self.silences = life.window.silences;
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

    /// What the window rang, and whether it is silent.
    async fn rung(&mut self, window: &Window) {
        let bells = window.bells.saturating_sub(self.bells);
        if bells > 0 {
            self.bells = window.bells;
            let evidence = Evidence::new(
                Source::Bell,
                format!("bell {} of this window", window.bells),
            );
            self.why_look(evidence.clone());
            self.looks.pop_front();
            self.examine(&window.pane).await;
            let mut session = self.shared.session();
            let live = session.live.as_ref();
            let prompt = live.filter(|live| live.answer.is_none());
            let prompt = prompt.map(|live| live.prompt.clone());
            session.tell(
                What::Bell {
                    count: bells,
                    prompt,
                },
                evidence,
            );
        }
        if window.silences > self.silences {
            self.silences = window.silences;
            let secs = self.shared.spec.silent.as_secs();
            {
                let mut session = self.shared.session();
                let is_quiet = session.moved.elapsed() >= self.shared.spec.silent / 2;
                if session.turns.is_busy && session.live.is_none() && is_quiet {
                    let detail = format!("silence {} of this window", window.silences);
                    session.tell(What::Silent { secs }, Evidence::new(Source::Bell, detail));
                }
            }
            // Else tmux would not tell of the next one. One that fails is tried
            // again then.
            let _ = self.shared.tmux.clear_alerts(&self.shared.at).await;
        }
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
            // Its prompt may be drawn later than anybody expects.
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

    /// Whether it takes messages, and tells it once it does for long enough.
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
        let name = {
            let mut session = self.shared.session();
            if let Some(life) = &mut session.life {
                life.is_ready = true;
            }
            let name = session.name.clone();
            let busy = session.turns.is_busy;
            let what = What::Ready {
                session: name.clone(),
                busy,
            };
            session.tell(what, Evidence::new(Source::Screen, "its composer is there"));
            name
        };
        // The name is a help for whoever comes back; the transcript has it, too.
        let _ = self
            .shared
            .tmux
            .name_session(&life.window.window, &name)
            .await;
        if is_adopted {
            // It may have asked while nobody looked.
            self.why_look(Evidence::new(Source::Screen, "it was found"));
        }
    }

    async fn never_ready(&mut self, life: &Life, look: &Look) {
        let said = last_lines(&look.text());
        {
            let mut session = self.shared.session();
            if let Some(life) = &mut session.life {
                life.is_over = true;
            }
            let exit = Exit {
                status: None,
                signal: None,
                said: format!("it did not take input in time; its screen says:\n{said}"),
            };
            let evidence = Evidence::new(Source::Screen, "no composer in time");
            session.tell(What::Died(exit), evidence);
        }
        processes::end(&life.window.life, life.window.pid).await;
    }

    /// Looks for a prompt that came or went.
    async fn examine(&mut self, pane: &str) {
        let before = self.shared.session().gone;
        let Ok(Some(look)) = self.shared.tmux.look(pane).await else {
            return;
        };
        let shared = self.shared.clone();
        let mut session = shared.session();
        let shown = shared.spec.kind.prompt(&look);
        let shown = shown.filter(|shown| may_wait(shown.rule, &session));
        if session.gone != before {
            // It was answered meanwhile, and this look may be from before that.
            self.looks.push_front(Instant::now() + BUSY_PAUSE);
            return;
        }
        let key = session.live.as_ref().map(|live| live.key.clone());
        match (shown, key) {
            (Some(shown), Some(key)) if shown.key == key => self.is_missing = false,
            (Some(shown), key) => {
                if key.is_some() {
                    session.prompt_gone("another prompt took its place", Source::Screen);
                }
                self.is_missing = false;
                self.prompt_since = Instant::now();
                let (prompt, call) = prompt_of(&shown, &mut session);
                session.live = Some(Live {
                    prompt: prompt.clone(),
                    key: shown.key,
                    call,
                    answer: None,
                });
                let first = prompt.text.lines().next().unwrap_or_default().trim();
                let detail = format!("{}; screen: {first}", self.why.detail);
                session.tell(What::Prompt(prompt), Evidence::new(self.why.source, detail));
                // What follows is looked at for as long as it waits.
                self.looks.clear();
            }
            // A screen may be half drawn: gone is what is missing twice.
            (None, Some(_)) if !self.is_missing => {
                self.is_missing = true;
                self.looks.push_front(Instant::now() + BUSY_PAUSE);
            }
            (None, Some(_)) => {
                self.is_missing = false;
                session.prompt_gone("it went away", Source::Screen);
            }
            (None, None) => {}
        }
    }

    /// Ends a turn that was cut short and leaves no record of it: nothing moves
    /// any more.
    async fn stands(&mut self, pane: &str, since: Instant) {
        let Ok(Some(look)) = self.shared.tmux.look(pane).await else {
            return;
        };
        let last = self.last_screen.take();
        let at = match last {
            Some((last, at)) if last == look && at >= since => at,
            _ => Instant::now(),
        };
        let is_over = at.elapsed() > CUT_SHORT && self.shared.spec.kind.is_ready(&look);
        self.last_screen = Some((look, at));
        let mut session = self.shared.session();
        if is_over && session.moved.elapsed() > CUT_SHORT && session.live.is_none() {
            session.cut_short = None;
            let evidence = Evidence::new(Source::Screen, "nothing moves since it was cut short");
            session.end_turn(Some("cancelled".into()), evidence);
        }
    }

    async fn died(&mut self, life: &Life) {
        let deadline = Instant::now() + TOLD_HOW;
        let window = loop {
            let window = self.shared.tmux.window_of(&self.shared.spec.name).await;
            let window = window.ok().flatten();
            let window = window.filter(|w| w.life == life.window.life);
            // tmux may hear of the end after us.
            let is_told = |w: &Window| w.status.is_some() || w.signal.is_some();
            if window.as_ref().is_none_or(is_told) || Instant::now() > deadline {
                break window;
            }
            self.shared.tmux.remind_of_children().await;
            tokio::time::sleep(BUSY_PAUSE).await;
        };
        let said = match &window {
            Some(window) => self.shared.tmux.history(&window.pane).await.ok(),
            None => None,
        };
        self.shared.catch_up().await;
        {
            let mut session = self.shared.session();
            match &mut session.life {
                Some(life) if !life.is_over => life.is_over = true,
                // It was asked to end meanwhile.
                _ => return,
            }
            session.live = None;
            session.pending.clear();
            let exit = Exit {
                status: window.as_ref().and_then(|window| window.status),
                signal: window.as_ref().and_then(|window| window.signal),
                said: said.map_or_else(|| "its window is gone".into(), |said| last_lines(&said)),
            };
            let detail = match (exit.status, exit.signal) {
                (_, Some(signal)) => format!("ended by signal {signal}"),
                (Some(status), None) => format!("ended with status {status}"),
                (None, None) => "ended".to_owned(),
            };
            let evidence = Evidence::new(Source::Process, detail);
            // Its end is the end of its turn, too.
            session.turns.drop_turn();
            session.release();
            session.tell(What::Died(exit), evidence);
        }
        self.flush().await;
        // What it started must not outlive it; who is left is ended by the launch.
        processes::end(&life.window.life, life.window.pid).await;
    }

    /// Hands on what was found; whether anybody is there to take it.
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
            if let What::Session { session } = &event.what {
                let window = self
                    .shared
                    .session()
                    .life
                    .clone()
                    .map(|life| life.window.window);
                if let Some(window) = window {
                    // As above, a help only.
                    let _ = self.shared.tmux.name_session(&window, session).await;
                }
            }
            if self.events.send(event).await.is_err() {
                return false;
            }
        }
    }
}

/// Whether the transcript lets a prompt wait at all: what is still on the screen
/// of a turn that ended, or of a call that has its result, does not.
fn may_wait(rule: &PromptRule, session: &super::session::Session) -> bool {
    match rule {
        _ if !session.is_followed() => true,
        rule if rule.call => !session.turns.calls.is_empty(),
        rule => session.turns.is_busy || rule.allow.is_empty(),
    }
}

/// A prompt with all that would be done: the whole subject stands in the
/// transcript, as the one call without a result that is shown on the screen.
fn prompt_of(shown: &Shown<'_>, session: &mut super::session::Session) -> (Prompt, Option<String>) {
    /// So much of a subject tells calls apart, and stands in one line.
    const PREFIX_CHARS: usize = 24;
    let screen = squeezed(&shown.text);
    let on_screen = |subject: &str| {
        let prefix: String = squeezed(subject).chars().take(PREFIX_CHARS).collect();
        !prefix.is_empty() && screen.contains(&prefix)
    };
    let mut calls = session.turns.calls.iter().filter(|call| {
        (shown.tool.is_empty() || shown.tool == call.tool) && on_screen(&call.subject)
    });
    let call = match (calls.next(), calls.next()) {
        (Some(call), None) => Some(call),
        // Two that look alike: nobody knows which is asked.
        (Some(_), Some(_)) => None,
        (None, _) => None,
    };
    let is_only = session.turns.calls.is_empty();
    let subject = match call {
        Some(call) => call.subject.clone(),
        None if is_only => shown.subject.clone().unwrap_or_default(),
        None => String::new(),
    };
    let tool = call.map_or_else(|| shown.tool.clone(), |call| call.tool.clone());
    let mut hasher = DefaultHasher::new();
    (session.epoch, &shown.key, call.map(|call| &call.id)).hash(&mut hasher);
    let digest = hasher.finish();
    let id = call.filter(|_| shown.rule.call).map(|call| call.id.clone());
    session.prompts += 1;
    let prompt = Prompt {
        id: format!("{digest:016x}-{}", session.prompts),
        tool,
        subject,
        text: shown.text.clone(),
        is_question: shown.rule.is_question,
        options: Vec::new(),
        always: shown.always.clone().unwrap_or_default(),
    };
    (prompt, id)
}

fn last_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SAID_LINES)..].join("\n")
}
