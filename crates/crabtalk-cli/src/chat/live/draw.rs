//! Draws the rows below the transcript: live output and composer.
//!
//! Invariant: the rows fit the terminal; open output is shortened first, the composer last.

use super::Live;
use super::steers::Known;
use super::transcript::MARGIN;
use crate::text::summary;
use crate::view;
use crabtalk_render::screen::{Drawing, size, terminal_size};
use crabtalk_render::{Line, shorten, theme};
use std::io;
use std::time::{Duration, Instant};

const SPINNER: [&str; 10] = [
    "\u{280b}", "\u{2819}", "\u{2839}", "\u{2838}", "\u{283c}", "\u{2834}", "\u{2826}", "\u{2827}",
    "\u{2807}", "\u{280f}",
];

/// Duration of a spinner frame in milliseconds.
pub(super) const SPIN_MS: u128 = 120;

/// Time after a resize in which another may follow.
const HOLD: Duration = Duration::from_secs(1);

/// Minimum rows of open output.
const MIN_OPEN: usize = 2;

/// Maximum rows of waiting messages.
const MAX_WAITING: usize = 3;

impl Live<'_> {
    /// Draws the screen.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.fit();
        let above = match self.holds_lines(now) {
            true => Vec::new(),
            false => self.transcript.take(),
        };
        self.mark_unknown();
        let drawing = self.drawing(now);
        self.canvas.draw(&above, &drawing)?;
        self.show_title()?;
        if let Some(asking) = self.asks.front_mut() {
            asking.drawn(now);
        }
        self.drawn = now;
        // The size may have changed again.
        self.dirty = terminal_size() != self.canvas.size();
        if self.dirty {
            self.canvas.doubt();
        }
        Ok(())
    }

    /// Whether final lines wait for a larger terminal, since they would cover rows that
    /// scrolled away.
    fn holds_lines(&self, now: Instant) -> bool {
        self.held_until().is_some_and(|until| now < until) && self.canvas.hides_rows()
    }

    /// When final lines are written regardless.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.resized.map(|at| at + HOLD)
    }

    /// Reads the size before final lines are laid out: the resize event may arrive
    /// later.
    pub(super) fn fit(&mut self) {
        if terminal_size() != self.canvas.size() {
            self.resized();
        }
    }

    /// Handles a new size of the terminal, which rewraps its rows.
    pub(super) fn resized(&mut self) {
        self.size = size();
        self.resized = Some(Instant::now());
        self.canvas.resize(terminal_size());
        self.transcript.resize(self.size.0);
        self.members.resize(self.size.0);
    }

    fn drawing(&mut self, now: Instant) -> Drawing {
        let (width, height) = self.size;
        let spinner = SPINNER
            [(now.duration_since(self.begun).as_millis() / SPIN_MS) as usize % SPINNER.len()];
        let status = self.status(width.saturating_sub(1), spinner);
        let room = height.saturating_sub(2).max(4);
        let (mut below, cursor) = match self.asks.front_mut() {
            Some(asking) => {
                let most = room.saturating_sub(MIN_OPEN + 2);
                let (mut rows, mut cursor) = asking.rows(width, most);
                if !asking.takes_keys() {
                    let (lines, at) = self.composer.rows(width, "");
                    cursor = Some((rows.len() + at.0, at.1));
                    rows.extend(lines);
                }
                (rows, cursor)
            }
            None if self.members.is_open() => {
                let rows = self
                    .members
                    .view_rows(width.saturating_sub(1), room, spinner);
                (rows, None)
            }
            None => match &self.picker {
                Some(picker) => picker.rows(width, room, jiff::Timestamp::now()),
                None => self.composing(width, height),
            },
        };
        below.push(status);
        let mut waiting = self.work(width, room / 2, spinner);
        waiting.extend(self.waiting(width));
        let open_room = room.saturating_sub(below.len() + waiting.len());
        let mut rows = self.transcript.open(open_room.max(MIN_OPEN), now, spinner);
        if self.is_waiting_for_words() && rows.is_empty() {
            rows.push(Line::styled(
                format!("{spinner} {}", self.activity(now)),
                theme::DIM,
            ));
        }
        rows.extend(waiting);
        let above = rows.len();
        rows.extend(below);
        // Small terminals show only the last rows.
        let (columns, most) = self.canvas.size();
        let excess = rows.len().saturating_sub(most.saturating_sub(1).max(1));
        rows.drain(..excess);
        if let Some(asking) = self.asks.front_mut() {
            asking.fits = excess <= above && columns >= width;
        }
        Drawing {
            rows,
            cursor: cursor
                .and_then(|(row, column)| Some(((above + row).checked_sub(excess)?, column))),
        }
    }

    /// The composer and completions, as far as they fit.
    fn composing(&mut self, width: usize, height: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let rule = "\u{2500}".repeat(width.saturating_sub(1));
        let mut rows = vec![Line::styled(rule, theme::DIM)];
        let hint = match (self.runs.is_running(), self.runs.waiting().next()) {
            (true, None) => "Enter steers, Tab queues, Esc interrupts",
            (true, Some(_)) => {
                "Enter steers, Tab queues, Up edits the queued message, Esc interrupts"
            }
            (false, _) if self.rewinds => "Esc again goes back to an earlier message",
            (false, _) => "type a message; / commands, @ files, ! shell",
        };
        let (lines, (row, column)) = self.composer.rows(width, hint);
        rows.extend(lines);
        let cursor = (row + 1, column);
        if let Some(popup) = &self.popup {
            // One row remains for the status.
            let most = height.saturating_sub(rows.len() + 2).max(1);
            rows.extend(popup.rows(width, most));
        }
        (rows, Some(cursor))
    }

    /// The todo list and the members of the active run.
    fn work(&self, width: usize, most: usize, spinner: &str) -> Vec<Line> {
        if !self.runs.is_running() || self.members.is_open() {
            return Vec::new();
        }
        let width = width.saturating_sub(1);
        let members = self.members.rows(self.runs.number(), width, spinner);
        let mut rows = self
            .transcript
            .todo_rows(most.saturating_sub(members.len()));
        rows.extend(members);
        rows
    }

    /// Unread steering messages.
    fn waiting(&self, width: usize) -> Vec<Line> {
        let steers = self.steers.iter().map(|(text, known)| {
            let mark = match known {
                Known::Sent => "\u{21b3} sending: ",
                Known::Kept => "\u{21b3} steering: ",
                Known::Unsure => "\u{21b3} perhaps not delivered: ",
            };
            (mark.to_owned(), text)
        });
        let alone = self.runs.place();
        let away = self.awaits();
        let begun = alone.is_some() || self.runs.is_running() || self.runs.waiting().count() > 1;
        let queued = self.runs.waiting();
        let queued = queued.filter(|_| begun || away.is_some());
        let queued = queued.chain(self.gone.waiting().map(|said| (said, None)));
        let queued = queued.map(|(text, place)| {
            let mark = match place {
                _ if let Some(away) = away => away.to_owned(),
                Some(place) if alone == Some(place) => view::queued(place),
                Some(place) if place.ahead > 1 => format!("queued, {} ahead", place.ahead),
                Some(_) | None => "queued".to_owned(),
            };
            (format!("\u{22ef} {mark}: "), text)
        });
        let all: Vec<(String, &str)> = steers.chain(queued).collect();
        let mut rows: Vec<Line> = all
            .iter()
            .take(MAX_WAITING)
            .map(|(mark, text)| {
                let line = Line::styled(mark.as_str(), theme::DIM).with(summary(text), theme::DIM);
                shorten(&line, width.saturating_sub(1))
            })
            .collect();
        if all.len() > MAX_WAITING {
            let more = all.len() - MAX_WAITING;
            rows.push(Line::styled(format!("{MARGIN}and {more} more"), theme::DIM));
        }
        rows
    }

    /// Whether an active run has no output yet.
    fn is_waiting_for_words(&self) -> bool {
        (!self.runs.is_empty() || self.shell.is_some()) && self.asks.is_empty()
    }

    fn activity(&self, now: Instant) -> String {
        let since = crate::text::ago_secs(now.duration_since(self.since));
        match (&self.shell, self.runs.is_running(), self.killing) {
            (Some((command, _)), ..) => format!("$ {} \u{b7} {since}", summary(command)),
            (None, _, true) => format!("cancelling \u{b7} {since}"),
            (None, true, _) => format!("working \u{b7} {since}"),
            (None, false, _) if self.runs.place().is_some() => format!("waiting \u{b7} {since}"),
            // Only queued messages.
            (None, false, _) => format!("asking \u{b7} {since}"),
        }
    }
}
