//! The disk as the gate sees it.
//!
//! Invariant: nothing here opens a file through `/proc`, where the same name
//! is another file for the daemon than for a command.

use crabtalk_domain::BoxFuture;
use crabtalk_files::{PathStep, Way};
use crabtalk_runtime::gate::{Content, Disk};
use crabtalk_tools::FileWork;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The disk, and turns at looking at it.
#[derive(Default)]
pub(crate) struct LocalDisk(pub(crate) FileWork);

impl Disk for LocalDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() || crabtalk_files::touch(path).is_err() {
            return None;
        }
        let mut way = Way::along(path);
        let mut missing = false;
        while let Some(step) = way.step() {
            let PathStep::Down { own } = step else {
                // What lies above something that is not there, nobody knows.
                if missing {
                    return None;
                }
                continue;
            };
            if way.at().starts_with("/proc") && way.at() != Path::new("/proc") {
                return None;
            }
            if missing {
                continue;
            }
            match std::fs::symlink_metadata(way.at()) {
                Ok(meta) if meta.file_type().is_symlink() => way.follow_link().ok()?,
                Ok(_) => {}
                // A link that leads nowhere leads who knows where.
                Err(error) if is_absent(&error) && own => missing = true,
                Err(_) => return None,
            }
        }
        Some(way.at().to_owned())
    }

    fn wait_for<'a>(
        &'a self,
        of: &'a str,
        work: Box<dyn FnOnce() + Send>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.0.look(of, work))
    }

    fn names(&self, folder: &Path, most: usize) -> Option<Vec<OsString>> {
        crabtalk_files::touch(folder).ok()?;
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            // The shell yields nothing there either.
            Err(_) => return Some(Vec::new()),
        };
        let mut found = Vec::new();
        for entry in entries {
            if found.len() == most {
                return None;
            }
            found.push(entry.ok()?.file_name());
        }
        Some(found)
    }

    fn read(&self, file: &Path, most: u64) -> Content {
        let Some(file) = self.resolve(file) else {
            return Content::Unclear;
        };
        let meta = match std::fs::symlink_metadata(&file) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Content::Absent,
            Err(_) => return Content::Unclear,
        };
        if meta.is_dir() {
            return Content::Folder;
        }
        if !meta.is_file() || meta.len() > most {
            return Content::Unclear;
        }
        let mut bytes = Vec::new();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(&file);
        let read = opened.and_then(|opened| opened.take(most + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 <= most => Content::File(bytes),
            _ => Content::Unclear,
        }
    }
}

/// Whether there is nothing by a name, nor can be.
fn is_absent(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_but_for_those_that_lead_nowhere_or_through_proc() {
        let disk = LocalDisk::default();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("/proc/self/cwd", root.join("cwd")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, want) in [
            ("link/file", Some("real/file")),
            ("link/../real", Some("real")),
            ("link/new", Some("real/new")),
            ("new/deep/er", Some("new/deep/er")),
            ("real/file/x", Some("real/file/x")),
            ("new/../real", None),
            ("dangling", None),
            ("dangling/x", None),
            ("cwd/../x", None),
            ("loop", None),
        ] {
            let resolved = disk.resolve(&root.join(path));
            assert_eq!(resolved, want.map(|want| root.join(want)), "{path}");
        }
        assert_eq!(disk.resolve(Path::new("/proc/self/environ")), None);
        assert_eq!(disk.resolve(Path::new("/dev/fd/3")), None);
        assert_eq!(
            disk.resolve(&root.join("x".repeat(300))),
            Some(root.join("x".repeat(300)))
        );
        assert_eq!(
            disk.read(&root.join("link/file"), 1),
            Content::File(b"x".to_vec())
        );
        assert_eq!(disk.read(&root.join("link/file"), 0), Content::Unclear);
        assert_eq!(disk.read(&root.join("real"), 0), Content::Folder);
        assert_eq!(disk.read(&root.join("none"), 0), Content::Absent);
    }
}
