//! Compares the folder of entries with the known state, and loads the changed files.

use super::watch::Changes;
use super::{Entries, Known, MAX_CONTENT_BYTES, State, format, slug};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// Largest file that is read: content and frontmatter.
pub(super) const MAX_FILE_BYTES: u64 = MAX_CONTENT_BYTES as u64 + 16 * 1024;
/// A file changed this shortly before it was read may change again without a
/// new time stamp.
const STAMP_DOUBT: Duration = Duration::from_secs(2);

/// By which a change of a file is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    changed: SystemTime,
    inode: u64,
    /// The stamp may stay while the file changes.
    doubtful: bool,
}

impl Entries {
    /// Takes notice of everything that changed in the folder.
    pub(crate) fn refresh(&mut self) {
        self.notice();
        match self.unseen.replace(BTreeSet::new()) {
            None => self.look_at_everything(),
            Some(names) => {
                for name in names {
                    self.look_at(&name, true);
                }
                for link in self.links.clone() {
                    self.look_at(OsStr::new(&link), false);
                }
            }
        }
        if self.index.wants_compaction() {
            self.compact();
        }
    }

    /// Whether a refresh would find nothing new. Opens no file.
    pub(crate) fn is_fresh(&mut self) -> bool {
        self.notice();
        self.links.is_empty() && self.unseen.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Collects the changes until the next read.
    fn notice(&mut self) {
        match self.watch.changes(&self.folder) {
            Changes::NoFolder if self.files.is_empty() => {
                self.trouble = None;
                self.unseen = Some(BTreeSet::new());
            }
            Changes::NoFolder | Changes::Unknown => self.unseen = None,
            Changes::Names(names) => {
                if let Some(unseen) = &mut self.unseen {
                    unseen.extend(names);
                }
            }
        }
    }

    /// Opens the folder, which may be absent. Logs once if another object is in its
    /// place or on the path.
    fn open_folder(&mut self) -> Option<fs::ReadDir> {
        let opened = fs::read_dir(&self.folder);
        let trouble = opened.as_ref().err().and_then(|error| {
            let absent = error.kind() == io::ErrorKind::NotFound
                && fs::symlink_metadata(&self.folder).is_err();
            (!absent).then(|| format!("cannot be read: {error}"))
        });
        if trouble != self.trouble {
            if let Some(reason) = &trouble {
                tracing::warn!(folder = %self.folder.display(), reason, "memory goes without entries");
            }
            self.trouble = trouble;
        }
        opened.ok()
    }

    fn look_at_everything(&mut self) {
        let mut gone: BTreeSet<String> = self.files.keys().cloned().collect();
        for item in self.open_folder().into_iter().flatten().flatten() {
            let name = item.file_name();
            if crabtalk_files::is_left_over(&name) {
                // Only this daemon writes here while it runs.
                let _ = fs::remove_file(item.path());
                continue;
            }
            if let Some(name) = name.to_str() {
                gone.remove(name);
            }
            self.look_at(&name, false);
        }
        for file in gone {
            self.drop_file(&file);
        }
    }

    /// Reads one file again if it changed; `certain`: the system said so.
    pub(super) fn look_at(&mut self, name: &OsStr, certain: bool) {
        let path = self.folder.join(name);
        if name.as_encoded_bytes().starts_with(b".") || path.extension() != Some(OsStr::new("md")) {
            return;
        }
        let Some(file) = name.to_str() else {
            let file = name.to_string_lossy().into_owned();
            let state = State::Broken("has a name that is not UTF-8".into());
            self.files.insert(file, Known { stamp: None, state });
            return;
        };
        match fs::symlink_metadata(&path) {
            Err(_) => return self.drop_file(file),
            Ok(meta) if meta.is_symlink() => self.links.insert(file.to_owned()),
            Ok(_) => self.links.remove(file),
        };
        let stamp = stamp(&path);
        let same = self.files.get(file).is_some_and(|known| {
            known.stamp.is_some_and(|stamp| !stamp.doubtful) && known.stamp == stamp
        });
        if certain || !same {
            self.load(file, stamp);
        }
    }

    pub(super) fn load(&mut self, file: &str, stamp: Option<Stamp>) {
        let path = self.folder.join(file);
        let text = crabtalk_files::read_text(&path, MAX_FILE_BYTES).map_err(|e| e.to_string());
        let hash = text
            .as_ref()
            .map_or(0, |text| slug::fnv(&[text.as_bytes()]));
        if let Some(known) = self.files.get_mut(file)
            && let State::Indexed(slot) = known.state
            && self.slots[slot]
                .as_ref()
                .is_some_and(|slot| text.is_ok() && slot.hash == hash)
        {
            known.stamp = stamp;
            return;
        }
        let said = self.files.get(file).and_then(Known::reason);
        self.forget(file);
        match text.and_then(|text| format::parse(&text)) {
            Err(reason) => {
                // Once for each thing that is wrong, not at every look.
                if said.as_ref() != Some(&reason) {
                    tracing::warn!(file = %path.display(), reason, "a memory entry is passed over");
                }
                let state = State::Broken(reason);
                self.files.insert(file.to_owned(), Known { stamp, state });
            }
            Ok(entry) => self.claim(file, stamp, &entry, hash),
        }
    }
}

/// The file's stamp; `None` if it cannot be told.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let changed = meta.modified().ok()?;
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    let age = SystemTime::now()
        .duration_since(changed)
        .unwrap_or_default();
    Some(Stamp {
        bytes: meta.len(),
        changed,
        inode,
        doubtful: age < STAMP_DOUBT,
    })
}
