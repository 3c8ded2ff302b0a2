//! The terminal while the chat has it: key by key, pastes as such.
//!
//! Invariant: whatever ends the chat, the terminal is as it was before.

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream};
use crossterm::{execute, terminal};
use futures_util::StreamExt;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// Events that are taken between two drawings.
const MAX_EVENTS: usize = 1_024;

/// A terminal in raw mode; as it was, once dropped.
pub(super) struct Raw {
    events: Option<EventStream>,
}

impl Raw {
    pub(super) fn begin() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self {
            events: Some(EventStream::new()),
        };
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }

    /// The events that are there, once there are any; `None` when nobody sits
    /// there any more.
    pub(super) async fn next(&mut self) -> Option<Vec<Event>> {
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
    pub(super) fn lend<T>(&mut self, borrower: impl FnOnce() -> T) -> io::Result<T> {
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
