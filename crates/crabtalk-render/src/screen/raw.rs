//! Raw mode of the terminal.
//!
//! Invariant: the terminal is restored at exit.

use crate::screen::ground::{self, Listener};
use crate::theme::Ground;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange, Event,
    EventStream,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, terminal};
use futures_util::StreamExt;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IsTerminal, Write};
use std::task::Poll;

/// Maximum events per frame.
const MAX_EVENTS: usize = 1_024;

/// Saves the title; the second sequence restores it, and the first clears it on terminals
/// that cannot save titles.
const SAVE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b]2;\x07\x1b[23;2t";

/// Maximum length of a title.
const MAX_TITLE: usize = 100;

/// A terminal in raw mode, restored on drop.
pub struct Raw {
    events: Option<EventStream>,
    listener: Listener,
    watches_focus: bool,
    keeps_title: bool,
}

/// Input of the terminal.
#[derive(Debug)]
pub struct Heard {
    /// Keys and other events.
    pub events: Vec<Event>,
    /// The reported background.
    pub ground: Option<Ground>,
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw")
    }
}

impl Raw {
    /// Enters raw mode.
    pub fn begin() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self {
            events: Some(EventStream::new()),
            listener: Listener::default(),
            watches_focus: false,
            keeps_title: false,
        };
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }

    /// Saves the terminal's title, which is restored at the end.
    pub fn keep_title(&mut self) -> io::Result<()> {
        self.keeps_title = true;
        write_out(SAVE_TITLE)
    }

    /// Requests events when the terminal gains or loses the focus.
    pub fn watch_focus(&mut self) -> io::Result<()> {
        self.watches_focus = true;
        execute!(io::stdout(), EnableFocusChange)
    }

    /// Requests the background; the answer arrives as input.
    pub fn ask_ground(&self) -> io::Result<()> {
        write_out(ground::ASK)
    }

    /// Waits for events and the background; `None` when the terminal is closed.
    pub async fn hear(&mut self) -> Option<Heard> {
        let events = self.next().await?;
        let (events, ground) = self.listener.hear(events);
        Some(Heard { events, ground })
    }

    /// Waits for events; `None` when the terminal is closed.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        let events = self.events.as_mut()?;
        poll_fn(|context| {
            let mut batch = Vec::new();
            while batch.len() < MAX_EVENTS {
                match events.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(event))) => batch.push(event),
                    Poll::Ready(Some(Err(_)) | None) if batch.is_empty() => {
                        return Poll::Ready(None);
                    }
                    Poll::Ready(Some(Err(_)) | None) | Poll::Pending => break,
                }
            }
            match batch.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(Some(batch)),
            }
        })
        .await
    }

    fn end(&self) {
        // A closed terminal needs no restore.
        if self.watches_focus {
            let _ = execute!(io::stdout(), DisableFocusChange);
        }
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }

    /// Lends the terminal to another program.
    pub fn lend<T>(&mut self, borrower: impl FnOnce() -> T) -> io::Result<T> {
        // The reader thread would take the other program's input.
        self.events = None;
        self.end();
        let done = borrower();
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        if self.watches_focus {
            self.watch_focus()?;
        }
        self.events = Some(EventStream::new());
        Ok(done)
    }
}

/// The alternate screen; dropping it restores the terminal.
#[derive(Debug)]
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Enters the alternate screen.
    pub fn begin() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen)?;
        let page = Self(());
        page.clear()?;
        Ok(page)
    }

    /// Clears the alternate screen, for example after a resize.
    pub fn clear(&self) -> io::Result<()> {
        use crossterm::{cursor::MoveTo, terminal::Clear, terminal::ClearType};
        execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0))
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        // A closed terminal needs no restore.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, crossterm::cursor::Show);
    }
}

/// Columns and rows for a layout, with a minimum.
pub fn size() -> (usize, usize) {
    let (columns, rows) = terminal_size();
    (columns.max(16), rows.max(6))
}

/// Columns and rows of the terminal.
pub fn terminal_size() -> (usize, usize) {
    let (columns, rows) = terminal::size().unwrap_or((80, 24));
    (usize::from(columns).max(1), usize::from(rows).max(1))
}

/// Whether styles are enabled.
pub fn styles() -> bool {
    !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The background: `theme` is `light`, `dark` or `plain`, else `COLORFGBG` decides. The
/// second value is whether to ask the terminal.
pub fn ground(theme: &str) -> (Ground, bool) {
    match theme {
        "light" => (Ground::Light, false),
        "dark" => (Ground::Dark, false),
        "plain" => (Ground::Unknown, false),
        _ => {
            let told = std::env::var("COLORFGBG").unwrap_or_default();
            let told = ground::of_variable(&told);
            (told.unwrap_or_default(), true)
        }
    }
}

/// Whether TERM names a terminal without escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb" || term.is_empty())
}

/// Disables colours of all libraries on a dumb terminal. Must be called first.
pub fn settle_colors() {
    if is_dumb() {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Whether no screen can be drawn: input or output is not a terminal, or the terminal
/// cannot move its cursor.
pub fn is_plain() -> bool {
    let unnamed = std::env::var_os("TERM").is_none();
    unnamed || is_dumb() || !io::stdin().is_terminal() || !io::stdout().is_terminal()
}

fn write_out(sequence: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

/// The sequence that sets the terminal's title.
pub fn title(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_control());
    let text: String = text.take(MAX_TITLE).collect();
    format!("\x1b]2;{text}\x07")
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.events = None;
        self.end();
        if self.keeps_title {
            let _ = write_out(RESTORE_TITLE);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn title_has_no_control_characters() {
        let long = format!("a\x1b]0;b\x07\u{9c}\n{}", "c".repeat(200));
        let title = super::title(&long);
        assert!(title.starts_with("\x1b]2;a]0;bccc"), "{title:?}");
        assert_eq!(title.chars().filter(|c| c.is_control()).count(), 2);
        assert!(title.len() < 110);
    }
}
