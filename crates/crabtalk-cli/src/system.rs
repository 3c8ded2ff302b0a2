//! System calls for processes, signals, locks and files.

mod process;
mod terminal;

pub(crate) use process::{end, is_program, leave_session, suspend};
pub(crate) use terminal::ControllingTerminal;

use rustix::fs::{FileType, FlockOperation, StatVfsMountFlags, flock};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Free space of a file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) read_only: bool,
    pub(crate) free: u64,
}

/// Variable with the user's home.
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

/// Locks a folder until the returned file is closed.
pub(crate) fn lock_folder(folder: &Path) -> io::Result<File> {
    let lock = File::open(folder)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// The owner of a file, if it is another user.
pub(crate) fn another_owner(metadata: &Metadata) -> Option<u32> {
    let own = rustix::process::geteuid().as_raw();
    Some(metadata.uid()).filter(|owner| *owner != own)
}

/// The mode, if other users have access.
pub(crate) fn open_to_others(metadata: &Metadata) -> Option<u32> {
    Some(metadata.mode() & 0o777).filter(|mode| mode & 0o077 != 0)
}

/// Free space of a folder's file system.
pub(crate) fn room(folder: &Path) -> io::Result<Room> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(Room {
        read_only: disk.f_flag.contains(StatVfsMountFlags::RDONLY),
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
    })
}

/// Columns of standard output on a terminal.
pub(crate) fn columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Subscribes to SIGCONT.
pub(crate) fn continued() -> io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))
}

/// The signals that end a program at a terminal.
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

    /// Resolves on such a signal. Cancel safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.hung_up.recv() => {}
        }
    }
}
