//! Ensures that one daemon uses a home (STORE-6).
//!
//! Invariant: the lock belongs to the open file, so that it ends with the process; the
//! file is never removed, since another daemon could then lock a new file beside the
//! holder of the old one.

use crate::error::is_unwritable;
use crate::fs::{FileLayer, OsFiles};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The locked file, which contains the owner's pid.
const PID_FILE: &str = "run/daemon.pid";

/// Maximum bytes of a pid with its newline.
const MAX_PID_BYTES: u64 = 32;

/// Number of attempts to take a lock: 300 ms in all, which a person hardly notices and
/// which a child on a busy machine needs until it executes its program.
const TRIES: u32 = 30;

/// Pause between attempts.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another daemon uses the home; two would write into the same logs.
    #[error("a daemon{} already runs on {}; stop it first, or use another home", pid.map(|pid| format!(" with pid {pid}")).unwrap_or_default(), home.display())]
    Held {
        /// The home's real path.
        home: PathBuf,
        /// The pid of the other daemon, if the file has it.
        pid: Option<u32>,
    },
    /// Locks of this file system have no effect or fail, as on some network file systems.
    #[error("{} is on a file system without working locks; put CRABTALK_HOME on a local disk", file.display())]
    NoLocks {
        /// The file of the lock.
        file: PathBuf,
        /// The error of the operating system, if any.
        #[source]
        source: Option<io::Error>,
    },
    /// The lock's file could not be used, usually for lack of rights or space.
    #[error("cannot {action} {}", file.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file of the operation.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// The exclusive right to use a home; ends when dropped.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
    home: PathBuf,
    /// Why the file lacks our pid: the disk is full.
    untold: Option<io::Error>,
}

impl HomeLock {
    /// Locks an existing home, whichever of its paths is given, and writes our pid to
    /// `run/daemon.pid`. Dropping the result releases the lock.
    ///
    /// # Errors
    /// Another daemon has the lock, or the file system does not support locks.
    pub fn acquire(home: &Path) -> Result<Self, Error> {
        Self::acquire_with(home, File::try_lock)
    }

    /// Logs that the pid could not be written.
    pub fn tell(&self) {
        if let Some(error) = &self.untold {
            tracing::warn!(home = %self.home.display(), %error, "cannot write the pid to the pid file; the home is locked anyway");
        }
    }

    fn acquire_with(
        home: &Path,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Error> {
        let io = |action, file: &Path| {
            let file = file.to_owned();
            move |source| Error::Io {
                action,
                file,
                source,
            }
        };
        let home = home.canonicalize().map_err(io("find", home))?;
        let path = home.join(PID_FILE);
        let dir = path.parent().expect("the pid file lies in a folder");
        OsFiles.make_dir(dir).map_err(io("create", dir))?;
        let mut file = open(&path).map_err(io("open", &path))?;
        match patiently(&file, &try_lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Held {
                    pid: pid(&file),
                    home,
                });
            }
            Err(TryLockError::Error(e)) => {
                return Err(Error::NoLocks {
                    file: path,
                    source: Some(e),
                });
            }
        }
        // Some file systems grant every lock. If a second lock succeeds here, it would
        // also succeed for another daemon.
        let second = open(&path).map_err(io("open", &path))?;
        match try_lock(&second) {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) => {
                return Err(Error::NoLocks {
                    file: path,
                    source: None,
                });
            }
            Err(TryLockError::Error(e)) => {
                return Err(Error::NoLocks {
                    file: path,
                    source: Some(e),
                });
            }
        }
        let text = format!("{}\n", std::process::id());
        // Truncate after the write: the kernel flushes a file that was emptied first when it is
        // closed, which would delay the start.
        let write = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64));
        let untold = match write {
            Err(error) if is_unwritable(&error) => Some(error),
            write => {
                write.map_err(io("write the pid to", &path))?;
                None
            }
        };
        Ok(Self { file, home, untold })
    }
}

/// Retries briefly while a process other than a daemon holds the lock: the child of a
/// killed daemon holds it until it executes its program. Does not wait for a live
/// daemon.
fn patiently(
    file: &File,
    try_lock: &impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<(), TryLockError> {
    for _ in 0..TRIES {
        match try_lock(file) {
            Err(TryLockError::WouldBlock) if !is_alive(file) => std::thread::sleep(BETWEEN_TRIES),
            done => return done,
        }
    }
    try_lock(file)
}

/// Whether the process whose pid is in the file exists.
fn is_alive(file: &File) -> bool {
    let pid = pid(file).and_then(|pid| i32::try_from(pid).ok());
    let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    match rustix::process::test_kill_process(pid) {
        Err(rustix::io::Errno::SRCH) => false,
        Ok(()) | Err(_) => true,
    }
}

impl Drop for HomeLock {
    /// Clears the pid before closing the file releases the lock.
    fn drop(&mut self) {
        if self.untold.is_none()
            && let Err(error) = self.file.set_len(0)
        {
            tracing::warn!(home = %self.home.display(), %error, "cannot clear the pid file");
        }
    }
}

/// Opens the file. Does not block on a pipe or device in its place.
fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    let in_the_way = || {
        let message = "it is not a regular file; move it away";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(in_the_way()),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(in_the_way());
    }
    Ok(file)
}

/// The pid in the file.
fn pid(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    Read::by_ref(&mut file)
        .take(MAX_PID_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn lock_error_names_blocking_path_and_remedy() {
        let home = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir_all(home.path().join(PID_FILE)).expect("a folder");
        let Err(Error::Io { source, file, .. }) = HomeLock::acquire(home.path()) else {
            panic!("a folder was locked")
        };
        assert!(source.to_string().contains("move it away"), "{source}");
        assert!(file.ends_with(PID_FILE));
    }

    #[test]
    fn a_second_daemon_learns_the_pid_of_the_first() {
        let home = tempfile::tempdir().expect("temp dir");
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("link");
        let first = HomeLock::acquire(home.path()).expect("free");
        let error = HomeLock::acquire(&link).expect_err("taken");
        let Error::Held { pid, home: named } = &error else {
            panic!("{error}")
        };
        assert_eq!(*pid, Some(std::process::id()));
        assert_eq!(*named, first.home);
        assert!(error.to_string().contains(&std::process::id().to_string()));
        drop(first);
        assert_eq!(
            std::fs::read_to_string(home.path().join(PID_FILE)).expect("stays"),
            ""
        );
        HomeLock::acquire(home.path()).expect("free again");
    }

    #[test]
    fn lock_waits_for_child_of_killed_daemon() {
        let home = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir(home.path().join("run")).expect("dir");
        // The pid of the killed daemon.
        std::fs::write(home.path().join(PID_FILE), "999999999\n").expect("stale");
        let held = open(&home.path().join(PID_FILE)).expect("opens");
        held.try_lock().expect("free");
        // Releases the lock, like the child when it executes its program.
        let (held, tries) = (Cell::new(Some(held)), Cell::new(0));
        let lock = HomeLock::acquire_with(home.path(), |file| {
            tries.set(tries.get() + 1);
            if tries.get() == 3 {
                drop(held.take());
            }
            file.try_lock()
        });
        let lock = lock.expect("free by then");
        assert!(tries.get() >= 3);
        // A live daemon is reported at once.
        let tries = Cell::new(0);
        let second = HomeLock::acquire_with(home.path(), |file| {
            tries.set(tries.get() + 1);
            file.try_lock()
        });
        assert!(matches!(second, Err(Error::Held { .. })), "{second:?}");
        assert_eq!(tries.get(), 1);
        drop(lock);
    }

    #[test]
    fn lock_reports_named_pipe_without_blocking() {
        let home = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir(home.path().join("run")).expect("dir");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let (pipe, kind) = (home.path().join(PID_FILE), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
        let error = HomeLock::acquire(home.path()).expect_err("no file");
        assert!(error.to_string().contains(PID_FILE), "{error}");
    }

    #[test]
    fn lock_ignores_pid_of_killed_daemon() {
        let home = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir(home.path().join("run")).expect("dir");
        std::fs::write(home.path().join(PID_FILE), "999999999\n").expect("stale");
        let lock = HomeLock::acquire(home.path()).expect("free");
        let pid = std::fs::read_to_string(home.path().join(PID_FILE)).expect("pid");
        assert_eq!(pid, format!("{}\n", std::process::id()));
        drop(lock);
    }

    #[test]
    fn locks_that_fail_or_hold_nobody_off_are_named() {
        let home = tempfile::tempdir().expect("temp dir");
        let unsupported = |_: &File| {
            Err(TryLockError::Error(io::Error::from_raw_os_error(
                rustix::io::Errno::NOTSUP.raw_os_error(),
            )))
        };
        let error = HomeLock::acquire_with(home.path(), unsupported).expect_err("no locks");
        assert!(
            matches!(
                error,
                Error::NoLocks {
                    source: Some(_),
                    ..
                }
            ),
            "{error}"
        );
        let error = HomeLock::acquire_with(home.path(), |_| Ok(())).expect_err("no locks");
        assert!(
            matches!(error, Error::NoLocks { source: None, .. }),
            "{error}"
        );
    }
}
