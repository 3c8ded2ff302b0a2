//! Standard output and standard error.
//!
//! Invariants: foreign text is cleaned for terminals and unchanged in files; each chunk
//! is flushed; an unfinished line is ended before other output.

use crate::text::clean;
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal, Write};

/// Output of a command.
pub(crate) struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    out_is_terminal: bool,
    /// Whether both streams go to the same terminal.
    shared: bool,
    colors: bool,
    /// Whether the answer's last line is unfinished.
    open_line: bool,
}

impl Screen {
    /// The process's own streams.
    pub(crate) fn stdio() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let out_is_terminal = out.is_terminal();
        let colors = anstream::AutoStream::choice(&err) != anstream::ColorChoice::Never;
        Self {
            shared: out_is_terminal && err.is_terminal(),
            out_is_terminal,
            colors: colors && err.is_terminal(),
            out: Box::new(out),
            err: Box::new(err),
            open_line: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn test(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        out_is_terminal: bool,
    ) -> Self {
        Self {
            out: Box::new(out),
            err: Box::new(err),
            out_is_terminal,
            shared: out_is_terminal,
            colors: false,
            open_line: false,
        }
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Writes a piece of an answer.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.out_is_terminal {
            self.out.write_all(clean(text).as_bytes())?;
        } else {
            self.out.write_all(text.as_bytes())?;
        }
        self.open_line = !text.ends_with('\n');
        self.out.flush()
    }

    /// Ends an unfinished line.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) {
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        Ok(())
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.answer(text)?;
        self.open_line = true;
        self.end_line()
    }

    /// Writes a JSON value as a line.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> io::Result<()> {
        writeln!(self.out, "{value}")?;
        self.out.flush()
    }

    /// Writes an error as JSON to standard error.
    pub(crate) fn json_problem(&mut self, value: &serde_json::Value) -> io::Result<()> {
        writeln!(self.err, "{value}")?;
        self.err.flush()
    }

    /// Writes a dimmed note.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.remark(text, Style::new().dimmed())
    }

    pub(crate) fn problem(&mut self, text: &str) -> io::Result<()> {
        self.remark(text, AnsiColor::Red.on_default())
    }

    fn remark(&mut self, text: &str, style: Style) -> io::Result<()> {
        if self.shared {
            self.end_line()?;
        }
        let text = clean(text);
        // A closed standard error is ignored.
        let written = if self.colors {
            writeln!(self.err, "{style}{text}{style:#}")
        } else {
            writeln!(self.err, "{text}")
        };
        let _ = written.and_then(|()| self.err.flush());
        Ok(())
    }

    pub(crate) fn bell(&mut self) {
        // A failed bell is not reported.
        let _ = self.err.write_all(b"\x07").and_then(|()| self.err.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_testkit::Buffer;

    #[test]
    fn a_terminal_gets_clean_text_and_a_file_gets_all() {
        for (terminal, want) in [(true, "a<U+001B>[2Jb\n"), (false, "a\x1b[2Jb\n")] {
            let (out, err) = (Buffer::default(), Buffer::default());
            let mut screen = Screen::test(out.clone(), err.clone(), terminal);
            screen.answer("a\x1b[2Jb").unwrap();
            screen.end_line().unwrap();
            screen.note("x\x1b]0;y").unwrap();
            assert_eq!(out.text(), want);
            assert_eq!(err.text(), "x<U+001B>]0;y\n");
        }
    }

    #[test]
    fn note_starts_on_a_new_line() {
        let both = Buffer::default();
        let mut screen = Screen::test(both.clone(), both.clone(), true);
        screen.answer("half").unwrap();
        screen.note("note").unwrap();
        screen.line("next").unwrap();
        assert_eq!(both.text(), "half\nnote\nnext\n");
    }
}
