//! Files read within a limit and replaced whole.

use crate::Error;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Reads a text file of at most `limit` bytes; `None` if there is none. A byte
/// order mark is dropped.
pub fn read_limited(path: &Path, limit: u64) -> Result<Option<String>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let metadata = file.metadata().map_err(|e| Error::io("read", path, e))?;
    if !metadata.is_file() {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::io("read", path, error));
    }
    let mut text = String::new();
    // The size is checked on what is read: a file may grow meanwhile.
    file.take(limit + 1)
        .read_to_string(&mut text)
        .map_err(|e| Error::io("read", path, e))?;
    if text.len() as u64 > limit {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }))
}

/// Replaces a file whole: a crash leaves the old text or the new one. The file
/// is for its owner alone (0600); a symbolic link stays and its target changes.
pub fn write_atomic(path: &Path, text: &str) -> Result<(), Error> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => path.to_owned(),
        Err(e) => return Err(Error::io("resolve", path, e)),
    };
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|e| e.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|e| Error::io("write", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_above_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_limited(&path, 5).unwrap().as_deref(), Some("12345"));
        let error = read_limited(&path, 4).unwrap_err().to_string();
        assert!(
            error.ends_with("a is larger than the limit of 4 bytes"),
            "{error}"
        );
        assert!(read_limited(&folder.path().join("b"), 4).unwrap().is_none());
        assert!(read_limited(folder.path(), 4).is_err());
    }

    #[test]
    fn a_replaced_file_is_private_and_its_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write_atomic(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
