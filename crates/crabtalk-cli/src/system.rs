//! Processes, signals, locks, and what a descriptor is.

mod process;
mod terminal;

pub(crate) use process::{become_program, is_alive, is_program, leave_session, suspend, terminate};
pub(crate) use terminal::ControllingTerminal;

use rustix::fs::{FileType, FlockOperation, StatVfsMountFlags, flock};
use rustix::process::{Resource, getrlimit};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// State of a file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) read_only: bool,
    pub(crate) free: u64,
}

/// Where a person's own folder is told.
pub(crate) const USER_HOME: &str = "HOME";

/// The fewest files that a command may have open: about a dozen are, with those that it
/// is started with, a connection and what it waits with.
const OPEN_FILES: u64 = 24;

/// Says what to do where a command may have fewer files open than it needs.
pub(crate) fn open_files_suffice() -> Result<(), String> {
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < OPEN_FILES => Err(format!(
            "a command needs {OPEN_FILES} open files at once, and may have {most} here: raise the \
             limit with `ulimit -n 1024`"
        )),
        _ => Ok(()),
    }
}

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

/// Whose a file is, if that is another user than this process works for.
pub(crate) fn another_owner(metadata: &Metadata) -> Option<u32> {
    let own = rustix::process::geteuid().as_raw();
    Some(metadata.uid()).filter(|owner| *owner != own)
}

/// The mode of what others than its owner may do something with.
pub(crate) fn open_to_others(metadata: &Metadata) -> Option<u32> {
    Some(metadata.mode() & 0o777).filter(|mode| mode & 0o077 != 0)
}

/// What there is on the disk of a folder.
pub(crate) fn room(folder: &Path) -> io::Result<Room> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(Room {
        read_only: disk.f_flag.contains(StatVfsMountFlags::RDONLY),
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
    })
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

/// A program that was stopped goes on, from the first time that it is waited for.
#[derive(Debug)]
pub(crate) struct Continued(Signal);

impl Continued {
    pub(crate) fn listen() -> io::Result<Self> {
        signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw())).map(Self)
    }

    /// The next time; `None` if there will be none.
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
