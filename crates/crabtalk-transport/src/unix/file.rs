//! The file of a listening socket: whether it is still there.
//!
//! Invariant: only our own file is removed, never what somebody put in its
//! place.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(target_os = "linux")]
use {
    rustix::fs::inotify::{self, CreateFlags, WatchFlags},
    std::os::fd::OwnedFd,
    tokio::io::unix::AsyncFd,
};

/// How often is looked where the system does not tell.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// A socket's file; removed with this.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// Readable when something happened to the file. A system out of watches
    /// has none.
    #[cfg(target_os = "linux")]
    events: Option<AsyncFd<OwnedFd>>,
}

impl SocketFile {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
            #[cfg(target_os = "linux")]
            events: watch(path)
                .inspect_err(
                    |error| tracing::debug!(%error, "the socket is looked at now and then"),
                )
                .ok(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn is_there(&self) -> bool {
        identity(&self.path).is_ok_and(|identity| identity == self.identity)
    }

    /// Resolves when the file is not at its path any more. Safe to cancel.
    pub(super) async fn lost(&self) {
        while self.is_there() {
            self.something_happens().await;
        }
    }

    #[cfg(target_os = "linux")]
    async fn something_happens(&self) {
        let Some(events) = &self.events else {
            return tokio::time::sleep(LOOK_EVERY).await;
        };
        match events.readable().await {
            Ok(mut ready) => {
                // What happened does not matter: the path is looked at.
                let mut told = [0; 1024];
                while rustix::io::read(events, &mut told).is_ok_and(|count| count > 0) {}
                ready.clear_ready();
            }
            Err(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn something_happens(&self) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Watches one file. It says nothing as long as nobody touches that, so an
/// idle daemon stays asleep.
#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "what is wrong with it cannot happen to an owned descriptor, and its successor is unsafe"
)]
fn watch(path: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    // A name that goes changes the number of names, which is an attribute.
    let what = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    inotify::add_watch(&events, path, what | WatchFlags::DONT_FOLLOW)?;
    AsyncFd::new(events)
}

/// Device and inode.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_there()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket could not be removed");
        }
    }
}
