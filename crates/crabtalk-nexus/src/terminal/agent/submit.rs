//! Types messages and commands.
//!
//! Invariants: nothing is typed into a viewed window, during a
//! turn, while a prompt is open, or without a composer; Enter is sent
//! separately, and only into a composer that shows the message; the transcript decides
//! whether it arrived.

use super::Terminal;
use crate::backend::{Evidence, Failure, Source, Submission, Submitted};
use crate::terminal::tmux::keys::{Stroke, shown};
use crate::terminal::tmux::look::Look;
use crate::terminal::tmux::windows::Window;
use std::time::{Duration, Instant};

/// Pause between two reads of a composer.
const PAUSE: Duration = Duration::from_millis(40);

/// Time for a composer to show pasted text; 200 KB take a while.
const SHOWS: Duration = Duration::from_secs(8);

/// Time for a program without a known composer to accept a paste.
const BLIND: Duration = Duration::from_millis(250);

/// Maximum presses of the keys that clear a draft, which may clear one line each.
const CLEARS: usize = 40;

/// Maximum attempts to type a key into a screen that changes.
const TRIES: usize = 20;

/// Time without effect after which Enter is pressed again: a completion may consume the
/// first.
const SWALLOWED: Duration = Duration::from_millis(600);

/// Maximum presses of Enter.
const ENTERS: usize = 3;

/// How long a submission is observed before only the watcher does.
const WATCHED: Duration = Duration::from_secs(4);

fn enter() -> [Stroke; 1] {
    [Stroke::Key("Enter".into())]
}

fn not_now(detail: &str) -> Failure {
    Failure::NotNow(Evidence::new(Source::Screen, detail))
}

impl Terminal {
    pub(super) async fn give(&self, message: Submission) -> Result<Submitted, Failure> {
        let window = self.shared.running()?;
        let found = self.shared.session().arrived(&message);
        self.shared.wake.notify_one();
        match found {
            Some((true, evidence)) => return Ok(Submitted::AlreadyThere(evidence)),
            Some((false, evidence)) => return Ok(Submitted::NotNow(evidence)),
            None => {}
        }
        match self.typed(&window, &message).await {
            Ok(evidence) => Ok(Submitted::Sent(evidence)),
            Err(Failure::NotNow(evidence)) => Ok(Submitted::NotNow(evidence)),
            Err(failure) => Err(failure),
        }
    }

    async fn typed(&self, window: &Window, message: &Submission) -> Result<Evidence, Failure> {
        self.paste(window, &message.text).await?;
        self.shared.session().expect(&message.id, &message.text);
        self.shared.wake.notify_one();
        let arrived = || {
            let session = self.shared.session();
            !session
                .pending
                .iter()
                .any(|pending| pending.id == message.id)
        };
        self.enter(window, &arrived).await?;
        let detail = format!("{} bytes pasted, <Enter>", message.text.len());
        Ok(match arrived() {
            true => Evidence::new(
                Source::Transcript,
                format!("{detail}; it is in the composer"),
            ),
            false => Evidence::new(Source::Screen, detail),
        })
    }

    /// Types one of the agent's own commands.
    pub(super) async fn command(&self, window: &Window, command: &str) -> Result<(), Failure> {
        self.paste(window, command).await?;
        self.enter(window, &|| false).await
    }

    /// Pastes a text into the composer without submitting it.
    async fn paste(&self, window: &Window, text: &str) -> Result<(), Failure> {
        if self.is_held(window) {
            return Err(not_now("a client shows the window"));
        }
        if self.shared.session().turns.is_busy {
            let evidence = Evidence::new(Source::Transcript, "a turn is in flight");
            return Err(Failure::NotNow(evidence));
        }
        let (tmux, kind) = (&self.shared.tmux, &self.shared.spec.kind);
        let pane = &window.pane;
        tmux.leave_mode(pane).await?;
        self.emptied(pane).await?;
        tmux.load(pane, text).await?;
        self.press(pane, &[Stroke::Paste], &|look| kind.is_ready(look))
            .await?;
        let deadline = Instant::now() + SHOWS;
        if text.trim().is_empty() {
            return Ok(());
        }
        loop {
            tokio::time::sleep(PAUSE).await;
            let look = self.now(pane).await?;
            match kind.composer.draft(&look) {
                Some(draft) if !draft.is_empty() => return Ok(()),
                None if kind.composer.line.is_none() && kind.composer.frame.is_none() => {
                    tokio::time::sleep(BLIND).await;
                    return Ok(());
                }
                // A dialog may have consumed it, or the paste is still in progress.
                _ if Instant::now() > deadline => {
                    return Err(not_now("the composer does not show what was pasted"));
                }
                _ => {}
            }
        }
    }

    /// Presses Enter, and again if the first press had no effect.
    async fn enter(
        &self,
        window: &Window,
        arrived: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Failure> {
        let kind = &self.shared.spec.kind;
        let pane = &window.pane;
        let drafted = |look: &Look| match kind.composer.draft(look) {
            Some(draft) => !draft.is_empty() && kind.prompt(look).is_none(),
            None => kind.composer.line.is_none() && kind.composer.frame.is_none(),
        };
        let since = Instant::now();
        for _ in 0..ENTERS {
            self.shared.tmux.leave_mode(pane).await?;
            self.press(pane, &enter(), &drafted).await?;
            let pressed = Instant::now();
            loop {
                tokio::time::sleep(PAUSE).await;
                self.shared.catch_up();
                if arrived() || since.elapsed() > WATCHED {
                    return Ok(());
                }
                let look = self.now(pane).await?;
                let draft = kind.composer.draft(&look);
                if draft.is_none_or(|draft| draft.is_empty()) {
                    return Ok(());
                }
                if pressed.elapsed() > SWALLOWED {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Clears the composer, and checks that it is empty.
    async fn emptied(&self, pane: &str) -> Result<(), Failure> {
        let kind = &self.shared.spec.kind;
        let clear: Vec<Stroke> = kind
            .composer
            .clear
            .iter()
            .map(|key| Stroke::parse(key))
            .collect();
        for _ in 0..CLEARS {
            let look = self.now(pane).await?;
            if kind.prompt(&look).is_some() {
                return Err(not_now("a prompt waits"));
            }
            if !kind.is_ready(&look) {
                return Err(not_now("its composer is not there"));
            }
            match kind.composer.draft(&look) {
                Some(draft) if !draft.is_empty() && !clear.is_empty() => {
                    self.press(pane, &clear, &|look| kind.is_ready(look))
                        .await?;
                    tokio::time::sleep(PAUSE).await;
                }
                _ => return Ok(()),
            }
        }
        Err(not_now("a draft cannot be taken away"))
    }

    /// Types keys once the screen meets a condition, with retries while it changes.
    pub(super) async fn press(
        &self,
        pane: &str,
        strokes: &[Stroke],
        is_right: &(dyn Fn(&Look) -> bool + Sync),
    ) -> Result<(), Failure> {
        for _ in 0..TRIES {
            let look = self.now(pane).await?;
            if !is_right(&look) {
                let detail = format!("the screen is not one for {}", shown(strokes));
                return Err(not_now(&detail));
            }
            if self.shared.tmux.press(pane, &look, strokes).await? {
                return Ok(());
            }
        }
        Err(not_now("the screen does not hold still"))
    }

    pub(super) async fn now(&self, pane: &str) -> Result<Look, Failure> {
        let look = self.shared.tmux.look(pane).await?;
        let gone = || Failure::NotRunning(format!("{}: its window is gone", self.shared.spec.name));
        match look {
            Some(look) if !look.is_dead => Ok(look),
            _ => Err(gone()),
        }
    }
}
