//! The console, as far as it is standard input: there is no other way to it
//! without asking the system itself.

use crate::prompt::Size;
use crate::terminal::{Line, MAX_LINE_BYTES, Terminal, USUAL};
use crate::text::clean;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use tokio::sync::mpsc;

/// Lines that are typed before anybody asks for them; more wait in the console.
const AHEAD: usize = 16;

/// Standard input and standard error, if a person sits there.
pub(crate) struct ControllingTerminal {
    /// From the thread that waits for lines; there is none before the first
    /// question.
    lines: Option<mpsc::Receiver<io::Result<String>>>,
}

impl ControllingTerminal {
    pub(crate) fn open() -> Option<Self> {
        io::stdin().is_terminal().then_some(Self { lines: None })
    }
}

/// Hands on lines until nobody takes them, or the input ends.
fn read_lines(lines: &mpsc::Sender<io::Result<String>>) {
    loop {
        let mut line = String::new();
        let mut input = io::stdin().lock().take(MAX_LINE_BYTES as u64);
        let read = match input.read_line(&mut line) {
            Ok(0) => return,
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if lines.blocking_send(read).is_err() || failed {
            return;
        }
    }
}

impl Terminal for ControllingTerminal {
    fn show(&mut self, text: &str) -> io::Result<()> {
        let mut error = io::stderr().lock();
        error.write_all(clean(text).as_bytes())?;
        error.flush()
    }

    fn line(&mut self) -> Line<'_> {
        Box::pin(async move {
            let lines = self.lines.get_or_insert_with(|| {
                let (hand_on, lines) = mpsc::channel(AHEAD);
                // It waits for a person, and ends with the process.
                std::thread::spawn(move || read_lines(&hand_on));
                lines
            });
            lines.recv().await.transpose()
        })
    }

    fn forget(&mut self) {
        while let Some(lines) = &mut self.lines
            && lines.try_recv().is_ok()
        {}
    }

    fn size(&self) -> Option<Size> {
        let size = crossterm::terminal::size().ok();
        Some(size.map_or(USUAL, |(columns, rows)| Size {
            columns: columns.into(),
            rows: rows.into(),
        }))
    }
}
