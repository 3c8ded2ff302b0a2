//! Cancels turns, compresses contexts, and ends the agent.

use super::launch::unnamed;
use super::{Shared, Terminal};
use crate::backend::{Compressed, Evidence, Failure, Source};
use crate::terminal::kind::Compress;
use crate::terminal::processes;
use crate::terminal::tmux::keys::Stroke;
use crate::terminal::tmux::windows::Window;
use std::time::{Duration, Instant};

/// Time for a history to be cleared or summarized.
const COMPRESSED: Duration = Duration::from_secs(27);

/// Pause between two reads of the screen.
const PAUSE: Duration = Duration::from_millis(50);

/// Marks a compression in progress; also resets the mark if the call is dropped.
struct Compressing<'a>(&'a Shared);

impl Drop for Compressing<'_> {
    fn drop(&mut self) {
        self.0.session().is_compressing = false;
    }
}

impl Terminal {
    pub(super) async fn cancelled(&self) -> Result<bool, Failure> {
        let window = self.shared.running()?;
        self.shared.catch_up();
        if !self.shared.session().turns.is_busy {
            return Ok(false);
        }
        let keys = &self.shared.spec.kind.commands.cancel;
        let strokes: Vec<Stroke> = keys.iter().map(|key| Stroke::parse(key)).collect();
        if strokes.is_empty() {
            return Err(Failure::Failed(
                "its kind has no key that cancels a turn".into(),
            ));
        }
        self.shared.tmux.leave_mode(&window.pane).await?;
        self.press(&window.pane, &strokes, &|_| true).await?;
        self.shared.session().cut_short = Some(Instant::now());
        self.shared.wake.notify_one();
        Ok(true)
    }

    pub(crate) async fn compressed(&self, how: Compress) -> Result<Compressed, Failure> {
        let window = self.shared.running()?;
        let commands = &self.shared.spec.kind.commands;
        let command = match how {
            Compress::Compact => &commands.compact,
            Compress::Clear => &commands.clear,
        };
        let Some(command) = command else {
            return Err(Failure::Failed("its kind has no command for this".into()));
        };
        self.shared.session().is_compressing = true;
        let _compressing = Compressing(&self.shared);
        let before = self.shared.session().compactions;
        self.command(&window, command).await?;
        let done = tokio::time::timeout(COMPRESSED, async {
            match how {
                Compress::Compact => self.compacted(&window, before).await,
                Compress::Clear => self.cleared(&window).await,
            }
        });
        let evidence = done.await.unwrap_or_else(|_| {
            let text = format!("{command} did not end within {} s", COMPRESSED.as_secs());
            Err(Failure::Timeout(text))
        })?;
        if how == Compress::Clear {
            self.shared
                .session()
                .forget(unnamed(&self.shared.spec.name));
        }
        Ok(Compressed {
            session: self.shared.session().name.clone(),
            evidence,
        })
    }

    /// Waits for the record of the summary, and then for the composer.
    async fn compacted(&self, window: &Window, before: u64) -> Result<Evidence, Failure> {
        loop {
            tokio::time::sleep(PAUSE).await;
            self.shared.catch_up();
            let (is_written, is_busy) = {
                let session = self.shared.session();
                (session.compactions > before, session.turns.is_busy)
            };
            let look = self.now(&window.pane).await?;
            if is_written && !is_busy && self.shared.spec.kind.is_ready(&look) {
                return Ok(Evidence::new(
                    Source::Transcript,
                    "the record of a compaction",
                ));
            }
        }
    }

    /// Waits for a screen that shows a cleared history.
    async fn cleared(&self, window: &Window) -> Result<Evidence, Failure> {
        let kind = &self.shared.spec.kind;
        loop {
            tokio::time::sleep(PAUSE).await;
            let look = self.now(&window.pane).await?;
            let is_empty = kind
                .composer
                .draft(&look)
                .is_none_or(|draft| draft.is_empty());
            let pattern = kind.commands.cleared.as_ref();
            let shows = pattern.is_none_or(|p| look.lines.iter().any(|line| p.matches(line)));
            if is_empty && shows && kind.is_ready(&look) {
                return Ok(Evidence::new(Source::Screen, "an empty composer after it"));
            }
        }
    }

    pub(super) async fn stopped(&self) -> Result<(), Failure> {
        let shared = &self.shared;
        {
            let mut session = shared.session();
            if let Some(life) = &mut session.life {
                life.is_over = true;
            }
            session.pending.clear();
            session.live = None;
        }
        let Some(window) = shared.tmux.window_of(&shared.spec.name).await? else {
            return Ok(());
        };
        let left = processes::end(&window.life).await;
        shared.tmux.close_window(&window.window).await?;
        if left > 0 {
            let text = format!("{left} processes of {} do not end", shared.spec.name);
            return Err(Failure::Failed(text));
        }
        let mut session = shared.session();
        session.end_turn(
            Some("cancelled".into()),
            Evidence::new(Source::Nexus, "the agent was stopped"),
        );
        drop(session);
        shared.wake.notify_one();
        Ok(())
    }
}
