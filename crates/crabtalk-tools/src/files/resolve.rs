//! Resolves the path that a model wrote to the absolute path that the gate judges.

use super::Error;
use crabtalk_files::{PathStep, PathWalk};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// The intended operation on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Read a file or list a folder.
    Read,
    /// Change a file that exists.
    Change,
    /// Create or replace a file.
    Create,
}

/// The folders to which relative paths and `~` refer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) user_home: Option<&'a Path>,
}

impl Resolver<'_> {
    /// The path for the gate: absolute, with existing links resolved. It does not reveal
    /// whether the path exists, since a path may not be read before it is
    /// allowed. [`Self::resolve`] reports invalid paths after
    /// that.
    pub(crate) fn lead(&self, text: &str) -> Result<PathBuf, Error> {
        let named = self.absolute(text)?;
        Ok(std::fs::canonicalize(&named).unwrap_or_else(|_| follow(&named)))
    }

    /// Resolves `text` to an absolute path without links, and checks that the operation is
    /// possible on it.
    pub(crate) fn resolve(&self, text: &str, intent: Intent) -> Result<PathBuf, Error> {
        let named = self.absolute(text)?;
        let path = match std::fs::canonicalize(&named) {
            Ok(path) => path,
            Err(e) if e.kind() == io::ErrorKind::NotFound => match intent {
                Intent::Create => return to_be_created(&named),
                Intent::Read | Intent::Change if is_link(&named) => {
                    return Err(Error::Dangling(named));
                }
                Intent::Read | Intent::Change => return Err(Error::NotFound(named)),
            },
            Err(e) => return Err(Error::io("resolve", named, e)),
        };
        let meta = std::fs::metadata(&path).map_err(|e| Error::io("inspect", &path, e))?;
        check_kind(&path, &meta, intent)?;
        Ok(path)
    }

    fn absolute(&self, text: &str) -> Result<PathBuf, Error> {
        if text.is_empty() {
            return Err(Error::EmptyPath);
        }
        if text.contains('\0') {
            return Err(Error::NulInPath);
        }
        let Some(rest) = text.strip_prefix('~') else {
            return Ok(self.cwd.join(text));
        };
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(Error::OtherHome(text.to_owned()));
        }
        let home = self.user_home.ok_or(Error::NoUserHome)?;
        Ok(home.join(rest.trim_start_matches('/')))
    }
}

/// Follows the links of a path that may not exist: missing, unreadable and non-folder
/// components are taken literally. The result is opened without following links, so the
/// judged path equals the opened one.
fn follow(named: &Path) -> PathBuf {
    let mut way = PathWalk::along(named);
    while let Some(step) = way.step() {
        if matches!(step, PathStep::Down { .. }) {
            // Anything but a link stays as written.
            let _ = way.follow_link();
        }
    }
    way.at().to_owned()
}

/// The path of a missing file: the deepest existing folder is resolved, the missing
/// names stay as written.
fn to_be_created(named: &Path) -> Result<PathBuf, Error> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut at = named.to_path_buf();
    loop {
        match std::fs::symlink_metadata(&at) {
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A `..` below a missing folder is invalid.
                let name = at
                    .file_name()
                    .ok_or_else(|| Error::NotFound(named.to_path_buf()))?;
                missing.push(name.to_owned());
                if !at.pop() {
                    return Err(Error::NotFound(named.to_path_buf()));
                }
            }
            Err(e) => return Err(Error::io("resolve", at, e)),
        }
    }
    let mut path = match std::fs::canonicalize(&at) {
        Ok(path) => path,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Error::Dangling(at)),
        Err(e) => return Err(Error::io("resolve", at, e)),
    };
    if !path.is_dir() {
        return Err(Error::NotAFolder(path));
    }
    path.extend(missing.into_iter().rev());
    Ok(path)
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_symlink())
}

/// Refuses everything except files and, for reading, folders.
pub(super) fn check_kind(path: &Path, meta: &Metadata, intent: Intent) -> Result<(), Error> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return match intent {
            Intent::Read => Ok(()),
            Intent::Change | Intent::Create => Err(Error::Folder(path.to_path_buf())),
        };
    }
    let kind = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a special file"
    };
    Err(Error::Special {
        path: path.to_path_buf(),
        kind,
    })
}

/// CrabTalk's home, and the paths in it that are open to one conversation.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    /// The home, `$CRABTALK_HOME`.
    pub(crate) home: &'a Path,
    /// Paths in the home that may be read.
    pub(crate) readable: &'a [PathBuf],
    /// Paths in the home that may be read and changed.
    pub(crate) writable: &'a [PathBuf],
}

impl Closed<'_> {
    /// Checks that the operation is allowed on a resolved path (GATE-3).
    pub(crate) fn check(&self, path: &Path, intent: Intent) -> Result<(), Error> {
        if is_process_information(path) {
            return Err(Error::Process(path.to_path_buf()));
        }
        if !is_below(path, self.home) {
            return Ok(());
        }
        if self.writable.iter().any(|open| is_below(path, open)) {
            return Ok(());
        }
        if !self.readable.iter().any(|open| is_below(path, open)) {
            return Err(Error::Closed(path.to_path_buf()));
        }
        match intent {
            Intent::Read => Ok(()),
            Intent::Change | Intent::Create => Err(Error::ReadOnlyHere(path.to_path_buf())),
        }
    }
}

/// Whether `path` is `folder` or below it. Folders are also compared by
/// identity, since bind mounts and case-insensitive disks give them several names.
pub(crate) fn is_below(path: &Path, folder: &Path) -> bool {
    let Ok(folder) = std::fs::canonicalize(folder) else {
        return path.starts_with(folder);
    };
    if path.starts_with(&folder) {
        return true;
    }
    let Ok(wanted) = std::fs::metadata(&folder) else {
        return false;
    };
    path.ancestors().any(|a| {
        std::fs::symlink_metadata(a)
            .is_ok_and(|m| m.dev() == wanted.dev() && m.ino() == wanted.ino())
    })
}

/// Whether a path is in `/proc/PID/`, which shows environment and memory of processes, the daemon included.
fn is_process_information(path: &Path) -> bool {
    let mut parts = path.components().skip_while(|c| *c == Component::RootDir);
    parts.next() == Some(Component::Normal("proc".as_ref()))
        && parts.next().is_some_and(|c| {
            c.as_os_str()
                .as_encoded_bytes()
                .iter()
                .all(|b| b.is_ascii_digit())
        })
}
