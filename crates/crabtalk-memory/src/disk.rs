//! Replaces files so that a crash leaves the old or the new, whole.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What unfinished files are called. Whoever lists a folder passes over them.
const PREFIX: &str = ".crabtalk-";
const SUFFIX: &str = ".tmp";

/// Whether an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    Refuse,
}

/// Writes a whole file: beside it, synced, renamed, and the folder synced.
pub(crate) fn write(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    // A link keeps pointing where its owner made it point.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    commit(stage(&path, text)?, &path, existing)
}

/// The half before the rename.
pub(crate) fn stage(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let folder = folder_of(path)?;
    create_folder(folder)?;
    let mut file = unfinished(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Creates a folder and those above it. Something else in the place of one of
/// them is told apart from a file that is there already.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    let in_place = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    match fs::create_dir_all(folder) {
        Err(error) if in_place(&error) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "something else is where its folder should be",
        )),
        created => created,
    }
}

/// A file without its name yet.
pub(crate) fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .tempfile_in(folder)
}

/// The rename and what makes it last.
pub(crate) fn commit(staged: NamedTempFile, path: &Path, existing: Existing) -> io::Result<()> {
    match existing {
        Existing::Replace => staged.persist(path),
        Existing::Refuse => staged.persist_noclobber(path),
    }
    .map_err(|e| e.error)?;
    sync_folder(path)
}

/// Deletes a file for good.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    sync_folder(path)
}

/// Whether a crash left this behind.
pub(crate) fn is_left_over(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// Reads a regular file of at most `limit` bytes, and says what is wrong
/// otherwise.
pub(crate) fn read(path: &Path, limit: u64) -> Result<String, String> {
    let meta = fs::metadata(path).map_err(|e| format!("cannot be read: {e}"))?;
    if !meta.is_file() {
        // Opening a pipe would wait for a writer.
        return Err("is not a regular file".into());
    }
    let too_large = || format!("has more than {limit} bytes");
    if meta.len() > limit {
        return Err(too_large());
    }
    let file = File::open(path).map_err(|e| format!("cannot be read: {e}"))?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".into())
}

/// A file that need not exist: `Ok(None)` when it does not.
pub(crate) fn read_if_there(path: &Path, limit: u64) -> Result<Option<String>, String> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read(path, limit).map(Some),
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent()
        .filter(|folder| folder != &PathBuf::new().as_path())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no folder"))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder_of(path)?)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_before_the_rename_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        write(&path, "old", Existing::Replace).unwrap();
        let staged = stage(&path, "new").unwrap();
        let (_, left) = staged.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(is_left_over(left.file_name().unwrap()));
        write(&path, "new", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_new_file_takes_no_other_ones_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/a.md");
        write(&path, "one", Existing::Refuse).unwrap();
        let refused = write(&path, "two", Existing::Refuse).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }

    #[test]
    fn a_file_in_a_folders_place_is_no_file_that_is_there_already() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("deep"), "").unwrap();
        for path in ["deep/a.md", "deep/er/a.md"] {
            let refused = write(&folder.path().join(path), "one", Existing::Refuse);
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotADirectory);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (
            folder.path().join("target.md"),
            folder.path().join("link.md"),
        );
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, "new", Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn reading_says_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        assert_eq!(read_if_there(&path, 9), Ok(None));
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path, 9), Err("is not UTF-8 text".into()));
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 9), Err("has more than 9 bytes".into()));
        assert_eq!(read(folder.path(), 9), Err("is not a regular file".into()));
    }
}
