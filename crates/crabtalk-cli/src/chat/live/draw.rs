//! Draws the rows below the transcript: live output, composer and status.
//!
//! Invariant: the rows fit the terminal; open output shrinks first, the composer last.

use super::Live;
use super::steers::Known;
use super::transcript::MARGIN;
use crate::text::{money, summary};
use crate::view;
use crabtalk_render::screen::{Drawing, size};
use crabtalk_render::{Line, Span, shorten, theme, tokens};
use std::io;
use std::time::Instant;

const SPINNER: [&str; 10] = [
    "\u{280b}", "\u{2819}", "\u{2839}", "\u{2838}", "\u{283c}", "\u{2834}", "\u{2826}", "\u{2827}",
    "\u{2807}", "\u{280f}",
];

/// Duration of a spinner frame in milliseconds.
pub(super) const SPIN_MS: u128 = 120;

/// Minimum rows of open output.
const MIN_OPEN: usize = 2;

/// Maximum rows of waiting messages.
const MAX_WAITING: usize = 3;

impl Live<'_> {
    /// Draws the screen.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.fit();
        let above = self.transcript.take();
        self.mark_unknown();
        let drawing = self.drawing(now);
        self.canvas.draw(&above, &drawing)?;
        if let Some(asking) = self.asks.front_mut() {
            asking.drawn(now);
        }
        self.drawn = now;
        self.dirty = false;
        Ok(())
    }

    /// Reads the size before final lines are laid out: the resize event may arrive
    /// later.
    pub(super) fn fit(&mut self) {
        let size = size();
        if size != self.size {
            self.resized(size);
        }
    }

    /// Handles a new size of the terminal, which rewraps its rows.
    pub(super) fn resized(&mut self, size: (usize, usize)) {
        self.size = size;
        self.canvas.resize(size.0);
        self.transcript.resize(size.0);
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
            None => match &self.picker {
                Some(picker) => picker.rows(width, room, jiff::Timestamp::now()),
                None => self.composing(width, height),
            },
        };
        below.push(status);
        let waiting = self.waiting(width);
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
        // Small terminals show the last rows.
        let excess = rows.len().saturating_sub(height.saturating_sub(1).max(1));
        rows.drain(..excess);
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
        let hint = match self.runs.is_running() {
            true => "Enter steers, Tab queues, Esc interrupts",
            false => "type a message; / commands, @ files, ! shell",
        };
        let (lines, (row, column)) = self.composer.rows(width, hint);
        rows.extend(lines);
        let cursor = (row + 1, column);
        if let Some(popup) = &self.popup {
            // One row stays free for the status.
            let most = height.saturating_sub(rows.len() + 2).max(1);
            rows.extend(popup.rows(width, most));
        }
        (rows, Some(cursor))
    }

    /// Unread steering messages.
    fn waiting(&self, width: usize) -> Vec<Line> {
        let steers = self.steers.iter().map(|(text, known)| {
            let mark = match known {
                Known::Sent => "\u{21b3} sending: ",
                Known::Kept => "\u{21b3} steering: ",
                Known::Unsure => "\u{21b3} maybe not delivered: ",
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

    /// Whether an active run shows nothing yet.
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
            // Queued messages.
            (None, false, _) => format!("asking \u{b7} {since}"),
        }
    }

    /// The status line.
    fn status(&self, width: usize, spinner: &str) -> Line {
        let mut parts: Vec<(usize, Span)> = Vec::new();
        let mut part = |rank: usize, text: String, style| {
            if !text.is_empty() {
                parts.push((rank, Span::new(text, style)));
            }
        };
        if let Some(why) = self.outage.why() {
            part(0, format!("disconnected: {why}"), theme::BAD);
        }
        let others = self.others.len();
        if others > 0 {
            let asks = if others == 1 { "ask" } else { "asks" };
            part(
                0,
                format!("{others} {asks} elsewhere (Ctrl-O)"),
                theme::ASKS,
            );
        }
        if !self.runs.is_empty() {
            part(1, format!("{spinner} {}", self.learned.agent), theme::GOOD);
        } else {
            part(1, self.learned.agent.clone(), theme::DIM);
        }
        part(4, self.place(), theme::DIM);
        let sender = match self.learned.sender.as_str() {
            "user" => String::new(),
            sender => format!("as {sender}"),
        };
        part(3, sender, theme::DIM);
        part(2, self.model.clone(), theme::DIM);
        match self.mode.name() {
            "full" => part(0, "full".to_owned(), theme::BAD),
            mode => part(2, mode.to_owned(), theme::DIM),
        }
        if self.tokens > 0 {
            part(5, format!("{} tokens", tokens(self.tokens)), theme::DIM);
        }
        part(3, self.context_used(), theme::DIM);
        if self.money > 0.0 {
            part(4, money(self.money), theme::DIM);
        }
        let between = 3;
        let room = width.saturating_sub(MARGIN.len());
        let long = |parts: &[(usize, Span)]| {
            parts
                .iter()
                .map(|(_, span)| span.width() + between)
                .sum::<usize>()
                > room + between
        };
        while long(&parts) && parts.len() > 1 {
            let last = parts.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
            let Some((at, _)) = last else { break };
            parts.remove(at);
        }
        let mut line = Line::styled(MARGIN, theme::PLAIN);
        for (index, (_, span)) in parts.into_iter().enumerate() {
            if index > 0 {
                line.push(Span::new(" \u{b7} ", theme::DIM));
            }
            line.push(span);
        }
        shorten(&line, width)
    }

    /// Folder and git branch.
    pub(super) fn place(&self) -> String {
        let folder = match self.cwd.strip_prefix(&self.user_home) {
            Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => self.cwd.display().to_string(),
        };
        match &self.branch {
            Some(branch) => format!("{folder} ({branch})"),
            None => folder,
        }
    }

    /// Used part of the context window.
    pub(super) fn context_used(&self) -> String {
        match (self.context_tokens, self.context_window) {
            (0, _) | (_, None | Some(0)) => String::new(),
            (used, Some(limit)) => format!("{}% context", (used * 100).div_ceil(limit)),
        }
    }
}
