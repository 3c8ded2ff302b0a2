//! Compares the folder of entries with the known state, and reads changed files.

use super::{Entries, Entry, KnownFile, MAX_CONTENT_BYTES, Slot, format, slug};
use crate::index::{Analysed, Document, Index};
use crate::text::passages;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// Largest file to read: content and frontmatter.
pub(super) const MAX_FILE_BYTES: u64 = MAX_CONTENT_BYTES as u64 + 16 * 1024;
/// A file that changed this shortly before it was read may change again without a new
/// time stamp.
const STAMP_DOUBT: Duration = Duration::from_secs(2);

/// Metadata by which a changed file is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    changed: SystemTime,
    inode: u64,
}

impl Entries {
    /// Reads all files that changed since the last call.
    pub(crate) fn refresh(&mut self) {
        let mut gone: BTreeSet<String> = self.files.keys().cloned().collect();
        let mut is_changed = false;
        for item in self.open_folder().into_iter().flatten().flatten() {
            let name = item.file_name();
            if crabtalk_files::is_left_over(&name) {
                // Only this daemon writes here while it runs.
                let _ = fs::remove_file(item.path());
                continue;
            }
            let file = name.to_string_lossy().into_owned();
            if file.starts_with('.') || !file.ends_with(".md") {
                continue;
            }
            gone.remove(&file);
            is_changed |= match name.to_str() {
                Some(file) => self.load(file),
                None => self.pass_over(&file, "has a name that is not UTF-8".into()),
            };
        }
        for file in &gone {
            self.files.remove(file);
        }
        if is_changed || !gone.is_empty() {
            self.make_index();
        }
    }

    /// Reads a file again after this daemon wrote or removed it.
    pub(super) fn read_again(&mut self, file: &str) {
        self.files.remove(file);
        if fs::symlink_metadata(self.folder.join(file)).is_ok() {
            self.load(file);
        }
        self.make_index();
    }

    /// Opens the folder, which may be absent. Logs once if another object has its path.
    fn open_folder(&mut self) -> Option<fs::ReadDir> {
        let opened = fs::read_dir(&self.folder);
        let trouble = opened.as_ref().err().and_then(|error| {
            let absent = error.kind() == io::ErrorKind::NotFound
                && fs::symlink_metadata(&self.folder).is_err();
            (!absent).then(|| format!("cannot be read: {error}"))
        });
        if trouble != self.trouble {
            if let Some(reason) = &trouble {
                tracing::warn!(folder = %self.folder.display(), reason, "cannot list memory entries");
            }
            self.trouble = trouble;
        }
        opened.ok()
    }

    /// Reads a file unless its stamp is unchanged; returns whether it did.
    fn load(&mut self, file: &str) -> bool {
        let path = self.folder.join(file);
        let stamp = stamp(&path);
        let known = self.files.get(file);
        if stamp.is_some() && known.is_some_and(|known| known.stamp == stamp) {
            return false;
        }
        let text = crabtalk_files::read_text(&path, MAX_FILE_BYTES).map_err(|e| e.to_string());
        match text.and_then(|text| format::parse(&text)) {
            Err(reason) => self.pass_over(file, reason),
            Ok(entry) => {
                let slot = Ok(slot(file, entry));
                self.files
                    .insert(file.to_owned(), KnownFile { stamp, slot });
                true
            }
        }
    }

    /// Records that a file is skipped, and why; returns whether that is new.
    fn pass_over(&mut self, file: &str, reason: String) -> bool {
        let known = self.files.get(file);
        if known.is_some_and(|known| known.slot.as_ref().is_err_and(|known| *known == reason)) {
            return false;
        }
        let path = self.folder.join(file);
        tracing::warn!(file = %path.display(), reason, "skipped a memory entry");
        let (stamp, slot) = (None, Err(reason));
        self.files
            .insert(file.to_owned(), KnownFile { stamp, slot });
        true
    }

    /// Selects the file for each entry, and indexes it.
    fn make_index(&mut self) {
        let mut claims = BTreeMap::<(String, String), Vec<&String>>::new();
        for (file, known) in &self.files {
            if let Ok(slot) = &known.slot {
                let key = (slot.name.clone(), slot.sender.clone());
                claims.entry(key).or_default().push(file);
            }
        }
        let winners = claims.into_iter().map(|(key, files)| {
            // The file that is named after its entry, else the first one.
            let mut own = slug::file_names(&key.0, &key.1).take(2);
            let own = own.find(|own| files.contains(&own));
            let winner = own.unwrap_or_else(|| files[0].clone());
            (key, winner)
        });
        self.winners = winners.collect();
        self.per_sender.clear();
        (self.index, self.documents) = (Index::new(), Vec::new());
        for (number, ((_, sender), file)) in self.winners.iter().enumerate() {
            *self.per_sender.entry(sender.clone()).or_default() += 1;
            let Some(Ok(slot)) = self.files.get(file).map(|known| &known.slot) else {
                continue;
            };
            // An index has room for far more documents than there are entries.
            let number = number as u32;
            let document = Document {
                conversation: number,
                session: number,
                ..Document::default()
            };
            for (passage, analysed) in slot.passages.iter().enumerate() {
                if self.index.append(&document, analysed).is_some() {
                    self.documents.push((file.clone(), passage));
                }
            }
        }
    }
}

fn slot(file: &str, entry: Entry) -> Slot {
    let passages = passages(&entry.content).into_iter().enumerate();
    let passages = passages.map(|(at, range)| {
        let passage = &entry.content[range];
        match at {
            0 => Analysed::of(&format!("{}\n{}\n{passage}", entry.name, entry.description)),
            _ => Analysed::of(passage),
        }
    });
    Slot {
        file: file.to_owned(),
        passages: passages.collect(),
        at: match entry.updated.is_empty() {
            true => entry.created,
            false => entry.updated,
        },
        name: entry.name,
        sender: entry.sender,
        shared: entry.shared,
    }
}

/// The file's stamp; `None` if it is unknown or might not change with the file.
fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let changed = meta.modified().ok()?;
    let age = SystemTime::now().duration_since(changed);
    (age.unwrap_or_default() >= STAMP_DOUBT).then_some(Stamp {
        bytes: meta.len(),
        changed,
        inode: meta.ino(),
    })
}
