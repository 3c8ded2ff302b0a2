//! Replaces files atomically: after a crash, a file has its old or its new content.
//!
//! Invariant: an unfinished file is in the folder of its target, under a name by which it is
//! recognised and removed after a crash.

use crate::system;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The prefix of unfinished files, which lists omit.
const PREFIX: &str = ".crabtalk-";
const SUFFIX: &str = ".tmp";

/// Whether an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The file is replaced.
    Replace,
    /// An existing file is an error.
    Refuse,
}

/// Writes a private file (0600): a new file beside it is synced and renamed, and the folder
/// is synced. Missing folders are created; a symbolic link stays, and its target changes.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    // A link stays; its target is replaced.
    let path = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    commit(stage(&path, bytes)?, &path, existing)
}

/// Writes and syncs a file beside its target: [`write()`] without the rename. Dropping the
/// result removes the file.
///
/// # Errors
/// The system's error, for instance a full disk; `path` is unchanged.
pub fn stage(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = folder_of(path)?;
    create_folder(folder)?;
    let mut file = unfinished(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Creates a private folder and missing parents, since the home's content is private even if
/// others may enter it (OPS-5). The error tells another object at one of these paths from
/// an existing file.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let in_place = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    match system::create_private(folder) {
        Err(error) if in_place(&error) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "another kind of file exists at the path of the folder",
        )),
        created => created,
    }
}

/// Creates an empty file in a folder, which [`commit`] renames. After a crash
/// [`is_left_over`] recognises it.
///
/// # Errors
/// The error of the system.
pub fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        // The library would add the temporary name to the error, which means nothing
        // to the caller.
        .make_in(folder, system::create_new)
}

/// Renames a staged file to its target and syncs the folder: the second half of [`write()`].
///
/// # Errors
/// The system's error; with [`Existing::Refuse`] also an existing file.
pub fn commit(staged: NamedTempFile, path: &Path, existing: Existing) -> io::Result<()> {
    match existing {
        Existing::Replace => staged.persist(path),
        Existing::Refuse => staged.persist_noclobber(path),
    }
    .map_err(|e| e.error)?;
    sync_folder(path)
}

/// Deletes a file and syncs its folder, so that the file does not return after a power loss.
///
/// # Errors
/// The system's error, also for a missing file.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    sync_folder(path)
}

/// Whether a file with this name was never committed, as after a crash.
pub fn is_left_over(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// Removes the unfinished files in a folder, which nothing else may write to at the same
/// time.
pub fn sweep(folder: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_left_over(&item.file_name()) {
            // Lists omit it if it cannot be removed.
            let _ = fs::remove_file(item.path());
        }
    }
}

/// The folder of a path; a path of one name is in the working directory.
fn folder_of(path: &Path) -> io::Result<&Path> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no folder");
    let folder = path.parent().ok_or_else(none)?;
    Ok(if folder == PathBuf::new() {
        Path::new(".")
    } else {
        folder
    })
}

fn sync_folder(path: &Path) -> io::Result<()> {
    system::sync_folder(folder_of(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_the_system_refuses_is_told_without_names_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let error = unfinished(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains(PREFIX), "{error}");
    }

    #[test]
    fn a_crash_before_the_rename_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        write(&path, b"old", Existing::Replace).unwrap();
        let staged = stage(&path, b"new").unwrap();
        let (_, left) = staged.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(is_left_over(left.file_name().unwrap()));
        write(&path, b"new", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        sweep(folder.path());
        assert!(!left.exists());
        assert!(path.exists());
    }

    #[test]
    fn a_new_file_takes_no_other_ones_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/a.md");
        write(&path, b"one", Existing::Refuse).unwrap();
        let refused = write(&path, b"two", Existing::Refuse).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }

    #[test]
    fn a_file_in_a_folders_place_is_no_file_that_is_there_already() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("deep"), "").unwrap();
        for path in ["deep/a.md", "deep/er/a.md"] {
            let refused = write(&folder.path().join(path), b"one", Existing::Refuse);
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotADirectory);
        }
    }

    #[test]
    fn a_replaced_file_is_private_and_its_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write(&link, b"new", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
