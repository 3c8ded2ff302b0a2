//! Input of the plain chat: standard input.

use std::future::Future;
use std::io::{self, BufRead, IsTerminal, Write};
use std::pin::Pin;

/// An input line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// The end of the input.
    End,
}

/// A pending line.
pub(crate) type Reading<'a> = Pin<Box<dyn Future<Output = io::Result<Typed>> + Send + 'a>>;

/// A source of lines.
pub(crate) trait Input {
    /// The next line; `name` is the prompt on a terminal.
    fn read(&mut self, name: &str) -> Reading<'_>;
}

/// Whether there is a terminal on which a screen can be drawn.
pub(super) fn is_screen() -> bool {
    !crabtalk_render::screen::is_plain()
}

/// The lines of standard input.
pub(super) fn open() -> Box<dyn Input> {
    Box::new(Plain)
}

/// Lines of a pipe, a file or a dumb terminal.
struct Plain;

impl Input for Plain {
    fn read(&mut self, name: &str) -> Reading<'_> {
        let prompt = io::stdin().is_terminal().then(|| format!("{name}> "));
        Box::pin(async {
            // A blocking read in a thread keeps Ctrl-C working.
            let read = tokio::task::spawn_blocking(|| {
                if let Some(prompt) = prompt {
                    let mut out = io::stderr();
                    out.write_all(prompt.as_bytes())?;
                    out.flush()?;
                }
                let mut line = String::new();
                let count = io::stdin().lock().read_line(&mut line)?;
                Ok(if count == 0 {
                    Typed::End
                } else {
                    Typed::Line(line)
                })
            });
            read.await.map_err(io::Error::other)?
        })
    }
}
