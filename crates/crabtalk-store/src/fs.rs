//! The port of the store to the file system, small enough that tests can simulate every
//! failure of a disk.

use std::fs::{DirBuilder, File, OpenOptions, rename};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The mode of logs: only the owner may read private messages (OPS-5).
const FILE_MODE: u32 = 0o600;

/// The mode of folders.
const DIR_MODE: u32 = 0o700;

/// Access mode for opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading, and writing at the current end.
    Append,
    /// Like `Append`; creates a missing file.
    AppendOrCreate,
    /// Overwriting, only to rewrite bytes that a failed sync lost.
    Patch,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub len: u64,
    /// Time of the last change.
    pub modified: SystemTime,
    /// Whether the file still has a name.
    pub linked: bool,
}

/// An open file.
pub trait LogFile: Send + Sync {
    /// Reads the metadata.
    fn stat(&self) -> io::Result<Stat>;
    /// One `pread`; may be short.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// One `write` at the end; may be short.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// One `pwrite`; the file was opened with [`Access::Patch`].
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Truncates the file.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// One `fdatasync`.
    fn sync(&self) -> io::Result<()>;
}

/// Operations on files and folders by name.
pub trait FileLayer: Send + Sync {
    /// Creates a folder and its parents; existing ones are accepted.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;
    /// Time of the last change of a file, or of the names in a folder; `None` if it does not
    /// exist.
    fn changed(&self, path: &Path) -> io::Result<Option<SystemTime>>;
    /// The names in a folder, unordered, except those that are not UTF-8, which the store
    /// never creates. Empty if the folder does not exist.
    fn names(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a file that must not exist yet, for appending.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn LogFile>>;
    /// Opens a regular file; anything else is `InvalidInput`.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn LogFile>>;
    /// Renames without replacing.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file whose creation failed.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFiles;

impl FileLayer for OsFiles {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)
    }

    fn changed(&self, path: &Path) -> io::Result<Option<SystemTime>> {
        match std::fs::metadata(path) {
            Ok(meta) => meta.modified().map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        match std::fs::read_dir(dir) {
            Ok(entries) => {
                let mut names = Vec::new();
                for entry in entries {
                    names.extend(entry?.file_name().into_string());
                }
                Ok(names)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        let file = options(Access::Append).create_new(true).open(path)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn LogFile>> {
        let file = options(access).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        Ok(Arc::new(OsFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // The file system lacks the flag. The daemon is the only writer here
            // (STORE-6), so a check before the rename is sufficient.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to.symlink_metadata() {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => rename(from, to),
            },
            Err(e) => Err(e.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match File::open(dir)?.sync_all() {
            // Some file systems always keep names durable and return this.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }
}

fn options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(FILE_MODE);
    // Opening a named pipe in the folder must not block.
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    match access {
        Access::Read => &mut options,
        Access::Append => options.append(true),
        Access::AppendOrCreate => options.append(true).create(true),
        Access::Patch => options.write(true),
    };
    options
}

struct OsFile(File);

impl LogFile for OsFile {
    fn stat(&self) -> io::Result<Stat> {
        let meta = self.0.metadata()?;
        Ok(Stat {
            len: meta.len(),
            modified: meta.modified()?,
            linked: meta.nlink() > 0,
        })
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0, buf, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(&self.0, bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Fills the buffer; a file that ends earlier is an error.
pub(crate) fn read_exact(file: &dyn LogFile, mut buf: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.read_at(buf, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buf = &mut buf[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Appends all bytes; after an error, some may have been appended.
pub(crate) fn append_all(file: &dyn LogFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_created_appended_patched_cut_and_synced() {
        let home = tempfile::tempdir().expect("temp dir");
        let path = home.path().join("log");
        let file = OsFiles.create(&path).expect("creates");
        let again = OsFiles.create(&path).err().expect("exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        append_all(&*file, b"one two").expect("appends");
        let patch = OsFiles.open(&path, Access::Patch).expect("opens");
        assert_eq!(patch.write_at(b"ONE", 0).expect("patches"), 3);
        append_all(&*file, b"!").expect("appends at the end all the same");
        file.sync().expect("syncs");
        OsFiles.sync_dir(home.path()).expect("syncs");
        assert_eq!(std::fs::read(&path).expect("reads"), b"ONE two!");
        file.truncate(3).expect("cuts");
        assert_eq!(file.stat().expect("stat").len, 3);
        OsFiles.remove(&path).expect("removes");
        assert!(!file.stat().expect("stat").linked);
    }

    #[test]
    fn a_rename_never_replaces() {
        let home = tempfile::tempdir().expect("temp dir");
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        std::fs::write(&a, "a").expect("write");
        std::fs::write(&b, "b").expect("write");
        let error = OsFiles.rename(&a, &b).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&b).expect("reads"), b"b");
        OsFiles.remove(&b).expect("removes");
        OsFiles.rename(&a, &b).expect("renames");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn open_refuses_irregular_files_without_blocking() {
        let home = tempfile::tempdir().expect("temp dir");
        let pipe = home.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        for path in [pipe.as_path(), home.path()] {
            let error = OsFiles.open(path, Access::Read).err().expect("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
    }
}
