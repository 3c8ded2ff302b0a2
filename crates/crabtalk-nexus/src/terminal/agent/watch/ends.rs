//! Reports how an agent ended, and ends turns without a record of their end.

use super::super::session::Life;
use super::{BUSY_PAUSE, Watcher};
use crate::backend::{Evidence, Exit, Source, What};
use crate::terminal::processes;
use crate::terminal::tmux::look::Look;
use crate::terminal::tmux::windows::Window;
use std::time::{Duration, Instant};

/// Time for tmux to report how a program ended.
const TOLD_HOW: Duration = Duration::from_secs(2);

/// How long the screen must be unchanged after a cancelled turn.
const CUT_SHORT: Duration = Duration::from_millis(1500);

/// Lines of the screen that are reported for an agent that died.
const SAID_LINES: usize = 8;

impl Watcher {
    pub(super) async fn never_ready(&mut self, life: &Life, look: &Look) {
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
        processes::end(&life.window.life).await;
    }

    /// Ends a cancelled turn that leaves no record of its end, once the screen is
    /// unchanged.
    pub(super) async fn stands(&mut self, pane: &str, since: Instant) {
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
            let evidence =
                Evidence::new(Source::Screen, "no activity since the turn was interrupted");
            session.end_turn(Some("cancelled".into()), evidence);
        }
    }

    pub(super) async fn died(&mut self, life: &Life) {
        let deadline = Instant::now() + TOLD_HOW;
        let window = loop {
            let window = self.shared.tmux.window_of(&self.shared.spec.name).await;
            let window = window.ok().flatten();
            let window = window.filter(|w| w.life == life.window.life);
            // tmux may notice the end later than this process.
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
        self.shared.catch_up();
        {
            let mut session = self.shared.session();
            match &mut session.life {
                Some(life) if !life.is_over => life.is_over = true,
                // It was asked to end.
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
            // The end of the process also ends the turn.
            session.turns.drop_turn();
            session.release();
            session.tell(What::Died(exit), evidence);
        }
        self.flush().await;
        // Its processes must not outlive it; the next launch ends remaining ones.
        processes::end(&life.window.life).await;
    }
}

fn last_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SAID_LINES)..].join("\n")
}
