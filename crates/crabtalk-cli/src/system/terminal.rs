//! `/dev/tty`: the controlling terminal.

use crate::prompt::Size;
use crate::terminal::{Line, MAX_LINE_BYTES, Terminal, USUAL};
use crate::text::clean;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::termios::QueueSelector;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use tokio::net::unix::pipe::Receiver;

/// An open `/dev/tty`.
pub(crate) struct ControllingTerminal {
    /// Waits and reads; any pollable descriptor can be used as a pipe receiver.
    reader: Receiver,
    writer: File,
    typed: Vec<u8>,
}

impl ControllingTerminal {
    /// Opens the terminal; `None` if the process has none. Must be called in a runtime.
    pub(crate) fn open() -> Option<Self> {
        // O_NONBLOCK affects only this open file.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let open = |path: &CStr| rustix::fs::open(path, flags, Mode::empty()).ok();
        let terminal = Self::over(open(c"/dev/tty")?.into());
        terminal.ok().or_else(|| {
            // If `/dev/tty` cannot be polled, its device can.
            let name = rustix::termios::ttyname(io::stderr(), Vec::new()).ok()?;
            Self::over(open(&name)?.into()).ok()
        })
    }

    fn over(file: File) -> io::Result<Self> {
        Ok(Self {
            writer: file.try_clone()?,
            reader: Receiver::from_file_unchecked(file)?,
            typed: Vec::new(),
        })
    }

    fn take_line(&mut self) -> Option<String> {
        let end = match self.typed.iter().position(|b| *b == b'\n') {
            Some(end) => end + 1,
            None if self.typed.len() >= MAX_LINE_BYTES => self.typed.len(),
            None => return None,
        };
        let line: Vec<u8> = self.typed.drain(..end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

impl Terminal for ControllingTerminal {
    fn show(&mut self, text: &str) -> io::Result<()> {
        let text = clean(text);
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.writer.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut wait = [PollFd::new(&self.writer, PollFlags::OUT)];
                    rustix::event::poll(&mut wait, None)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Line<'_> {
        Box::pin(async move {
            loop {
                if let Some(line) = self.take_line() {
                    return Ok(Some(line));
                }
                self.reader.readable().await?;
                let mut chunk = [0; 4096];
                match self.reader.try_read(&mut chunk) {
                    Ok(0) => return Ok(None),
                    Ok(count) => self.typed.extend_from_slice(&chunk[..count]),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        })
    }

    fn forget(&mut self) {
        self.typed.clear();
        // Also discards an incomplete line, which a read would not return.
        let _ = rustix::termios::tcflush(&self.writer, QueueSelector::IFlush);
        let mut chunk = [0; 4096];
        while matches!(self.reader.try_read(&mut chunk), Ok(count) if count > 0) {}
    }

    fn hide(&mut self, hide: bool) {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        // Other files have no echo.
        if let Ok(mut modes) = tcgetattr(&self.writer) {
            modes.local_modes.set(LocalModes::ECHO, !hide);
            let _ = tcsetattr(&self.writer, OptionalActions::Now, &modes);
        }
    }

    fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(&self.writer).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        Some(size.map_or(USUAL, |size| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[tokio::test]
    async fn lines_survive_a_dropped_wait() {
        let (mut person, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut terminal = ControllingTerminal::over(OwnedFd::from(ours).into()).unwrap();
        person.write_all(b"hal").unwrap();
        assert!(
            terminal.line().now_or_never().is_none(),
            "no whole line yet"
        );
        person.write_all(b"f\r\nnext\n").unwrap();
        assert_eq!(terminal.line().await.unwrap().as_deref(), Some("half"));
        assert_eq!(terminal.line().await.unwrap().as_deref(), Some("next"));
        terminal.show("a\x1b[2Jb").unwrap();
        let mut shown = [0; 13];
        person.read_exact(&mut shown).unwrap();
        assert_eq!(&shown, b"a<U+001B>[2Jb");
        // Earlier input does not answer a question.
        person.write_all(b"y\nyes\ny").unwrap();
        terminal.forget();
        person.write_all(b"no\n").unwrap();
        assert_eq!(terminal.line().await.unwrap().as_deref(), Some("no"));
        drop(person);
        assert_eq!(terminal.line().await.unwrap(), None);
    }
}
