//! The state of a path: identified, stored and restored.
//!
//! Invariants: paths are walked without following links; reads never block on a
//! pipe; a content is stored before its state is returned; a file that is too large
//! is identified by its stamp and never read.

use crate::files::{PathInFolder, give, open_folder};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Largest file whose content is stored; larger files are rarely edited by hand.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;

/// Mode bits that are restored; set-user-ID and set-group-ID are not.
const MODE_BITS: u32 = 0o777;

/// Mode bits of which any makes a file executable.
const EXECUTABLE: u32 = 0o111;

/// The reason why a link cannot be stored.
pub(super) const NOT_TEXT: &str = "the target of the link is not UTF-8";

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(super) enum PathState {
    Nothing,
    File {
        sha256: String,
        size: u64,
        mode: u32,
        /// Whether the whole mode is known, or only whether the file is executable.
        exact: bool,
    },
    Link {
        target: String,
    },
    /// Anything else; its content is not stored.
    Unkept {
        why: String,
        stamp: String,
    },
}

impl PathState {
    /// Whether two states are the same, as far as known.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    sha256,
                    mode,
                    exact,
                    ..
                },
                Self::File {
                    sha256: of_other,
                    mode: other_mode,
                    exact: other_exact,
                    ..
                },
            ) => {
                let same_mode = match *exact && *other_exact {
                    true => mode == other_mode,
                    false => is_program(*mode) == is_program(*other_mode),
                };
                sha256 == of_other && same_mode
            }
            (one, other) => one == other,
        }
    }

    /// The reason why the state cannot be restored.
    pub(super) fn lost(&self) -> Option<&str> {
        match self {
            Self::Unkept { why, .. } => Some(why),
            Self::Nothing | Self::File { .. } | Self::Link { .. } => None,
        }
    }
}

pub(super) fn is_program(mode: u32) -> bool {
    mode & EXECUTABLE != 0
}

/// A path with an open descriptor of its folder.
pub(super) struct OpenPath<'a>(PathInFolder<'a>);

impl<'a> OpenPath<'a> {
    /// Walks to a path; `None` if a folder on the way is missing and `make` is
    /// not set.
    pub(super) fn reach(path: &'a Path, make: bool) -> Result<Option<Self>, String> {
        match PathInFolder::reach(path, make) {
            Ok(spot) => Ok(Some(Self(spot))),
            Err(crate::files::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Removes unfinished files that a crash left next to this one.
    pub(super) fn sweep(&self) {
        self.0.sweep();
    }

    fn failed(&self, what: &str, error: impl Into<io::Error>) -> String {
        format!("cannot {what} {}: {}", self.0.path.display(), error.into())
    }

    fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.0.folder, self.0.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Reads the state and passes the content of a file to `keep`.
    pub(super) fn look(&self, keep: &mut Keep<'_>) -> Result<PathState, String> {
        let stat = match self.stat() {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(PathState::Nothing),
            Err(error) => return Err(self.failed("look at", error)),
        };
        let stamp = stamp(&stat);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.0.folder, self.0.name, Vec::new())
                    .map_err(|e| self.failed("read the link", e))?;
                Ok(match target.into_string() {
                    Ok(target) => PathState::Link { target },
                    Err(_) => PathState::Unkept {
                        why: NOT_TEXT.to_owned(),
                        stamp,
                    },
                })
            }
            FileType::RegularFile => {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                if let Some(why) = keep.refuses(size) {
                    return Ok(PathState::Unkept { why, stamp });
                }
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&self.0.folder, self.0.name, flags, Mode::empty());
                let file = match file {
                    Ok(file) => File::from(file),
                    Err(error) => {
                        let why = format!("it could not be read ({error})");
                        return Ok(PathState::Unkept { why, stamp });
                    }
                };
                let mut bytes = Vec::new();
                let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
                read.map_err(|e| self.failed("read", e))?;
                if bytes.len() as u64 > MAX_FILE_BYTES {
                    let why = too_large(bytes.len() as u64);
                    return Ok(PathState::Unkept { why, stamp });
                }
                let sha256 = keep.take(&bytes)?;
                Ok(PathState::File {
                    sha256,
                    size: bytes.len() as u64,
                    mode: stat.st_mode & MODE_BITS,
                    exact: true,
                })
            }
            kind @ (FileType::Directory
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown) => Ok(PathState::Unkept {
                why: format!("it is not a file ({kind:?})"),
                stamp: "not a file".to_owned(),
            }),
        }
    }

    /// Restores a state if the present state is `now`.
    pub(super) fn put(
        &self,
        found: &PathState,
        content: &[u8],
        now: &PathState,
    ) -> Result<(), String> {
        let check = || match self.look(&mut Keep::Nowhere)? {
            there if there.is(now) => Ok(()),
            _ => Err(format!(
                "{} changed at the same time",
                self.0.path.display()
            )),
        };
        let name = |temporary: &str| {
            check()?;
            rustix::fs::renameat(&self.0.folder, temporary, &self.0.folder, self.0.name)
                .map_err(|e| self.failed("put back", e))
        };
        match found {
            PathState::Nothing => {
                check()?;
                rustix::fs::unlinkat(&self.0.folder, self.0.name, AtFlags::empty())
                    .map_err(|e| self.failed("remove", e))
            }
            PathState::Link { target } => {
                let temporary = self.0.temporary();
                rustix::fs::symlinkat(target.as_str(), &self.0.folder, &*temporary)
                    .map_err(|e| self.failed("make the link", e))?;
                let named = name(&temporary);
                if named.is_err() {
                    self.0.discard(&temporary);
                }
                named
            }
            PathState::File { mode, exact, .. } => {
                let mode = match (exact, now) {
                    (false, PathState::File { mode: there, .. }) => with_program(*there, *mode),
                    _ => *mode,
                };
                let adopt = |file: &File| {
                    if let Ok(old) = self.stat() {
                        give(file, old.st_uid, old.st_gid);
                    }
                    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
                };
                self.0.write(content, false, adopt, name)
            }
            PathState::Unkept { why, .. } => Err(format!("{}: {why}", self.0.path.display())),
        }
    }
}

/// The state of a path.
pub(super) fn look(path: &Path, keep: &mut Keep<'_>) -> Result<PathState, String> {
    match OpenPath::reach(path, false)? {
        Some(place) => place.look(keep),
        None => Ok(PathState::Nothing),
    }
}

/// The destination of file contents.
pub(super) enum Keep<'a> {
    /// Contents are hashed only.
    Nowhere,
    /// Contents are stored in a folder with this many free bytes.
    In(&'a Path, &'a mut u64),
}

impl Keep<'_> {
    fn refuses(&self, size: u64) -> Option<String> {
        if size > MAX_FILE_BYTES {
            return Some(too_large(size));
        }
        match self {
            Self::In(_, room) if size > **room => {
                Some("there was too little room to keep it".to_owned())
            }
            Self::In(..) | Self::Nowhere => None,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<String, String> {
        let sha256 = sha256(bytes);
        if let Self::In(folder, room) = self {
            store(folder, &sha256, bytes)?;
            **room = room.saturating_sub(bytes.len() as u64);
        }
        Ok(sha256)
    }
}

/// Stores a content under its hash.
pub(super) fn store(folder: &Path, sha256: &str, bytes: &[u8]) -> Result<(), String> {
    let path = folder.join(sha256);
    if path.exists() {
        return Ok(());
    }
    let written = crabtalk_files::create_folder(folder).and_then(|()| {
        let mut file = crabtalk_files::unfinished(folder)?;
        file.write_all(bytes)?;
        file.persist(&path).map_err(|e| e.error).map(drop)
    });
    written.map_err(|e| format!("cannot keep a content in {}: {e}", folder.display()))
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn too_large(size: u64) -> String {
    let mib = MAX_FILE_BYTES >> 20;
    format!("it had {size} bytes, and only contents of up to {mib} MiB are kept")
}

fn stamp(stat: &rustix::fs::Stat) -> String {
    format!(
        "{}:{}:{}:{}.{}",
        stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec
    )
}

/// The mode `there`, made executable or not like `wanted`: those who can read
/// can execute.
fn with_program(there: u32, wanted: u32) -> u32 {
    match is_program(wanted) {
        true => there | (there & 0o444) >> 2,
        false => there & !EXECUTABLE,
    }
}

/// Removes empty folders from a path upwards, up to `top`.
pub(super) fn tidy(path: &Path, top: &Path) {
    let mut folder = path.parent().map(PathBuf::from);
    while let Some(at) = folder {
        if at == top || !at.starts_with(top) {
            return;
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return;
        };
        // A link or a folder that is not empty stays.
        let gone = open_folder(parent, false)
            .is_ok_and(|parent| rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok());
        if !gone {
            return;
        }
        folder = at.parent().map(PathBuf::from);
    }
}
