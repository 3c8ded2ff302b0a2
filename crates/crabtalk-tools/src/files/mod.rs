//! The file tools: `read`, `grep`, `glob`, `edit`, `write`.
//!
//! Invariants: a path is judged after every `..` and link in it was resolved;
//! exactly that path is opened, component by component, and a link
//! that appeared since is refused (GATE-2). `$CRABTALK_HOME` is closed
//! (GATE-3). Contents are replaced completely or not at all.
//!
//! All functions block; callers run them on the blocking pool.

mod change;
mod edit;
mod open;
mod picture;
mod read;
mod resolve;
mod search;
mod write;

pub use change::unified_diff;
pub use picture::image;

pub(crate) use change::Change;
pub(crate) use open::{PathInFolder, give, open_folder};
pub(crate) use read::{ReadArguments, read};
pub(crate) use resolve::{Closed, Intent, Resolver, is_below};
pub(crate) use search::{GlobArguments, GrepArguments, Searched, glob, grep};

use std::io;
use std::path::PathBuf;

/// An error of a file tool, worded for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the path is empty")]
    EmptyPath,
    #[error("the path contains a NUL character")]
    NulInPath,
    #[error("{0} names another user's home; only `~` and `~/...` are understood")]
    OtherHome(String),
    #[error("`~` cannot be resolved: the daemon runs without HOME; use an absolute path")]
    NoUserHome,
    #[error("no such file: {}", .0.display())]
    NotFound(PathBuf),
    #[error("{} is a link to something that does not exist; name its target instead", .0.display())]
    Dangling(PathBuf),
    #[error("{} is not a folder, so nothing can be created below it", .0.display())]
    NotAFolder(PathBuf),
    #[error("{} is a folder; name a file in it", .0.display())]
    Folder(PathBuf),
    #[error("{} is {kind}, not a file; the file tools do not touch it", .path.display())]
    Special { path: PathBuf, kind: &'static str },
    #[error(
        "{} is process information, which may hold the daemon's own secrets; it is closed to the file tools",
        .0.display()
    )]
    Process(PathBuf),
    #[error("{} is inside CrabTalk's own home, which is closed to tools", .0.display())]
    Closed(PathBuf),
    #[error("{} is inside CrabTalk's own home; it may be read, not changed", .0.display())]
    ReadOnlyHere(PathBuf),
    #[error(
        "{} changed after the permission check: a part is now a link or not a folder; call again",
        .0.display()
    )]
    Changed(PathBuf),
    #[error("{} was changed by others; nothing was done, read it again", .0.display())]
    ChangedMeanwhile(PathBuf),
    #[error(
        "{} was modified after the change was shown; nothing was done, read it again",
        .0.display()
    )]
    ChangedSinceShown(PathBuf),
    #[error("cannot {attempt} {}: {}", .path.display(), reason(.source))]
    Io {
        attempt: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{0}")]
    Content(String),
}

impl Error {
    fn io(attempt: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            attempt,
            path: path.into(),
            source: source.into(),
        }
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

/// The system's error, with a known remedy.
fn reason(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let kind = error.kind();
    if matches!(kind, Kind::StorageFull | Kind::QuotaExceeded) {
        "the disk is full; the earlier content is unchanged".into()
    } else if kind == Kind::ReadOnlyFilesystem {
        "that file system is read-only".into()
    } else if kind == Kind::PermissionDenied {
        "permission denied".into()
    } else {
        error.to_string()
    }
}
