//! Elsewhere: what the standard library and the terminal's crate have for all
//! systems.

mod terminal;

pub(crate) use terminal::ControllingTerminal;

use super::Room;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::Command;

pub(crate) const USER_HOME: &str = "USERPROFILE";

/// Nothing hands in what never ends there.
pub(crate) fn is_piped(input: &impl IsTerminal) -> bool {
    !input.is_terminal()
}

/// No such limit is known there.
pub(crate) fn open_files_suffice() -> Result<(), String> {
    Ok(())
}

/// A folder cannot be opened there: a file in it is held.
pub(crate) fn lock_folder(folder: &Path) -> io::Result<File> {
    let lock = File::create(folder.join(".lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Nobody tells there without asking the system itself.
pub(crate) fn another_owner(_: &Metadata) -> Option<u32> {
    None
}

pub(crate) fn open_to_others(_: &Metadata) -> Option<u32> {
    None
}

pub(crate) fn room(_: &Path) -> io::Result<Room> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) fn columns() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let (columns, _) = crossterm::terminal::size().ok()?;
    Some(columns).filter(|columns| *columns > 0)
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Runs it instead, and ends as it ended.
pub(crate) fn become_program(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// No shell there stops its jobs.
pub(crate) fn suspend() -> io::Result<()> {
    Ok(())
}

#[derive(Debug)]
pub(crate) struct Continued(());

impl Continued {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(crate) async fn next(&mut self) -> Option<()> {
        std::future::pending().await
    }
}

/// No daemon runs there.
pub(crate) fn leave_session() {}

pub(crate) fn terminate(_: i32) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) fn is_alive(_: i32) -> bool {
    false
}

#[derive(Debug)]
pub(crate) struct Interrupted(());

impl Interrupted {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(crate) async fn next(&mut self) -> Option<()> {
        tokio::signal::ctrl_c().await.ok()
    }
}

/// A window that is closed ends its programs by itself.
#[derive(Debug)]
pub(crate) struct Ending(());

impl Ending {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }
}
