//! The terminal while a program has it: key by key, pastes as such.
//!
//! Invariant: whatever ends the program, the terminal is as it was before.

use crate::screen::ground::{self, Listener};
use crate::theme::Ground;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, terminal};
use futures_util::StreamExt;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IsTerminal, Write};
use std::task::Poll;

/// Events that are taken between two drawings.
const MAX_EVENTS: usize = 1_024;

/// A terminal in raw mode; as it was, once dropped.
pub struct Raw {
    events: Option<EventStream>,
    listener: Listener,
}

/// What came from the terminal.
#[derive(Debug)]
pub struct Heard {
    /// What was typed.
    pub events: Vec<Event>,
    /// What the terminal says of its ground, once it does.
    pub ground: Option<Ground>,
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw")
    }
}

impl Raw {
    /// Takes the terminal.
    pub fn begin() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self {
            events: Some(EventStream::new()),
            listener: Listener::default(),
        };
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }

    /// Asks the terminal for its ground. The answer comes among what is typed, if
    /// it comes.
    pub fn ask_ground(&self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(ground::ASK.as_bytes())?;
        out.flush()
    }

    /// The same as [`Self::next`], with what the terminal says of itself.
    pub async fn hear(&mut self) -> Option<Heard> {
        let events = self.next().await?;
        let (events, ground) = self.listener.hear(events);
        Some(Heard { events, ground })
    }

    /// The events that are there, once there are any; `None` when nobody sits
    /// there any more.
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

    /// Leaves the terminal to somebody else for a while.
    pub fn lend<T>(&mut self, borrower: impl FnOnce() -> T) -> io::Result<T> {
        // Its thread would read what the borrower is told.
        self.events = None;
        end();
        let done = borrower();
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        self.events = Some(EventStream::new());
        Ok(done)
    }
}

/// The whole terminal, empty; what it showed before comes back once it is dropped.
#[derive(Debug)]
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Takes it.
    pub fn begin() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen)?;
        let page = Self(());
        page.clear()?;
        Ok(page)
    }

    /// Makes it empty, with the cursor at its beginning, as after a change of its size.
    pub fn clear(&self) -> io::Result<()> {
        use crossterm::{cursor::MoveTo, terminal::Clear, terminal::ClearType};
        execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0))
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing again.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, crossterm::cursor::Show);
    }
}

/// Columns and rows.
pub fn size() -> (usize, usize) {
    let (columns, rows) = terminal::size().unwrap_or((80, 24));
    (usize::from(columns).max(16), usize::from(rows).max(6))
}

/// Whether colours and other styles are wanted.
pub fn styles() -> bool {
    !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The ground as far as it is known: `theme` may be `light`, `dark` or `plain`, else
/// `COLORFGBG` tells it. The second is whether the terminal is to be asked.
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

/// Whether the terminal, by its name, shows an escape sequence as it is; one whose
/// name is empty is taken for such. The other variables that speak of colours, `CI`
/// among them, change nothing of that.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb" || term.is_empty())
}

/// Lets every library in this process write without colours where the terminal
/// is dumb. To be called first of all.
pub fn settle_colors() {
    if is_dumb() {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Whether there is nobody to draw for: no terminal on both sides, or one that
/// cannot move its cursor.
pub fn is_plain() -> bool {
    let unnamed = std::env::var_os("TERM").is_none();
    unnamed || is_dumb() || !io::stdin().is_terminal() || !io::stdout().is_terminal()
}

fn end() {
    // A terminal that is gone needs no putting back.
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    let _ = terminal::disable_raw_mode();
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.events = None;
        end();
    }
}
