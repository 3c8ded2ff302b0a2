//! Unix: processes, signals, locks, and what a descriptor is.

mod process;
mod terminal;

pub(crate) use process::{become_program, is_alive, is_program, leave_session, terminate};
pub(crate) use terminal::ControllingTerminal;

use rustix::fs::{FileType, FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Where a person's own folder is told.
pub(crate) const USER_HOME: &str = "HOME";

/// Whether standard input is a pipe or a file.
pub(crate) fn is_piped(input: &impl AsFd) -> bool {
    rustix::fs::fstat(input).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::RegularFile
        )
    })
}

/// Waits until nobody else holds a folder; it is held until what is answered is
/// closed.
pub(crate) fn lock_folder(folder: &Path) -> io::Result<File> {
    let lock = File::open(folder)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// How wide standard output is, if it is a terminal that says so.
pub(crate) fn columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Ctrl-C, from the first time that it is waited for.
#[derive(Debug)]
pub(crate) struct Interrupted(Signal);

impl Interrupted {
    pub(crate) fn listen() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// The next one; `None` if there will be none.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// What tells a program at a terminal to end.
#[derive(Debug)]
pub(crate) struct Ending {
    terminated: Signal,
    hung_up: Signal,
}

impl Ending {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
        })
    }

    /// Resolves when it is told. May be dropped and asked for again.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.hung_up.recv() => {}
        }
    }
}
