//! Reports the files of a folder that changed since the last call.
//!
//! On Linux the changes come from inotify, so that a call costs nothing while
//! nothing changes; on other systems, and whenever events were lost, the result
//! is "read all files".

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Anything may have.
    Unknown,
    NoFolder,
    /// These and no others.
    Names(BTreeSet<OsString>),
}

#[cfg(target_os = "linux")]
pub(super) use linux::Watch;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Watch;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::*;

    /// Knows nothing.
    #[derive(Debug, Default)]
    pub(in super::super) struct Watch;

    impl Watch {
        pub(in super::super) fn changes(&mut self, _folder: &Path) -> Changes {
            Changes::Unknown
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use std::ffi::OsStr;
    use std::io::ErrorKind;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    /// Room for a few hundred events at a time.
    const BUFFER_BYTES: usize = 16 * 1024;

    /// A watched folder.
    #[derive(Debug, Default)]
    pub(in super::super) struct Watch(Option<Watched>);

    #[derive(Debug)]
    struct Watched {
        list: OwnedFd,
        /// Device and inode: another folder may take the path.
        folder: (u64, u64),
    }

    impl Watch {
        pub(in super::super) fn changes(&mut self, folder: &Path) -> Changes {
            let id = match std::fs::metadata(folder) {
                Ok(meta) => (meta.dev(), meta.ino()),
                Err(error) => {
                    self.0 = None;
                    let absent = error.kind() == ErrorKind::NotFound
                        && std::fs::symlink_metadata(folder).is_err();
                    // Another object in place of the folder is not an empty memory.
                    return match absent {
                        true => Changes::NoFolder,
                        false => Changes::Unknown,
                    };
                }
            };
            let known = self.0.as_ref().filter(|watched| watched.folder == id);
            if let Some(names) = known.and_then(|watched| read(&watched.list)) {
                return Changes::Names(names);
            }
            // Watch before reading, so that no change is missed.
            self.0 = watch(folder, id);
            Changes::Unknown
        }
    }

    fn watch(folder: &Path, id: (u64, u64)) -> Option<Watched> {
        let list = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&list, folder, wanted).ok()?;
        Some(Watched { list, folder: id })
    }

    /// The names in the list, `None` if it is incomplete.
    fn read(list: &OwnedFd) -> Option<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(list, &mut buffer);
        let lost = ReadFlags::QUEUE_OVERFLOW | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        loop {
            match reader.next() {
                Ok(event) if event.events().intersects(lost) => return None,
                Ok(event) => names.extend(
                    event
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()),
                ),
                Err(Errno::AGAIN) => return Some(names),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::fs;

        #[test]
        fn every_kind_of_edit_is_told() {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path().join("entries");
            let mut watch = Watch::default();
            assert_eq!(watch.changes(&folder), Changes::NoFolder);
            fs::create_dir(&folder).unwrap();
            assert_eq!(watch.changes(&folder), Changes::Unknown, "a new folder");
            let told = |watch: &mut Watch, want: &[&str]| {
                let want = want.iter().map(OsString::from).collect();
                assert_eq!(watch.changes(&folder), Changes::Names(want));
            };
            told(&mut watch, &[]);
            fs::write(folder.join("a.md"), "1").unwrap();
            told(&mut watch, &["a.md"]);
            fs::write(folder.join("a.md"), "2").unwrap();
            told(&mut watch, &["a.md"]);
            fs::rename(folder.join("a.md"), folder.join("b.md")).unwrap();
            told(&mut watch, &["a.md", "b.md"]);
            fs::remove_file(folder.join("b.md")).unwrap();
            told(&mut watch, &["b.md"]);
            told(&mut watch, &[]);
            fs::rename(&folder, root.path().join("old")).unwrap();
            fs::create_dir(&folder).unwrap();
            assert_eq!(watch.changes(&folder), Changes::Unknown, "another folder");
            told(&mut watch, &[]);
        }
    }
}
