//! The folder of entry files, and what is derived from it.
//!
//! Invariants: the files are the truth, and everything here can be dropped and
//! read again. An entry is named by its frontmatter and its sender, a file name
//! is a hint. A file that cannot be read hides no other one.

mod format;
mod slug;
mod watch;

pub use format::Entry;
pub(crate) use format::parse;

use crate::disk::{self, Existing};
use crate::index::{DocId, Document, Index};
use crate::text::passages;
use crate::{Error, Warning};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use watch::{Changes, Watch};

/// Longest name; it stands in lists and results.
pub const MAX_NAME_BYTES: usize = 200;
/// Longest description; it is one line of a result.
pub const MAX_DESCRIPTION_BYTES: usize = 2_000;
/// Longest content: a long chapter. What is larger is a document, no memory.
pub const MAX_CONTENT_BYTES: usize = 256 * 1024;
/// Largest file that is read: content and frontmatter.
const MAX_FILE_BYTES: u64 = MAX_CONTENT_BYTES as u64 + 16 * 1024;
/// A file changed this shortly before it was read may change again without a
/// new time stamp.
const STAMP_DOUBT: Duration = Duration::from_secs(2);

/// What memory keeps of an entry beside its file.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) sender: String,
    pub(crate) shared: bool,
    pub(crate) at: String,
    hash: u64,
    docs: Range<DocId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    changed: SystemTime,
    inode: u64,
    /// The stamp may stay while the file changes.
    doubtful: bool,
}

#[derive(Debug)]
enum State {
    Indexed(usize),
    /// Another file has the same name and sender.
    Shadowed {
        name: String,
        sender: String,
    },
    Broken(String),
}

#[derive(Debug)]
struct Known {
    stamp: Option<Stamp>,
    state: State,
}

impl Known {
    /// Why the file is passed over, if it is broken.
    fn reason(&self) -> Option<String> {
        match &self.state {
            State::Broken(reason) => Some(reason.clone()),
            State::Indexed(_) | State::Shadowed { .. } => None,
        }
    }
}

/// Files by the sender whose entries they hold.
type Claims = BTreeMap<String, BTreeSet<String>>;

/// The entries.
#[derive(Debug)]
pub(crate) struct Entries {
    folder: PathBuf,
    watch: Watch,
    /// What changed and was not looked at yet; `None`: everything.
    unseen: Option<BTreeSet<OsString>>,
    files: BTreeMap<String, Known>,
    /// Links, whose targets change unseen by the watch.
    links: BTreeSet<String>,
    claims: HashMap<String, Claims>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    per_sender: HashMap<String, usize>,
    index: Index,
    slot_of_doc: Vec<usize>,
    next_conversation: u32,
}

impl Entries {
    /// The folder's entries; nothing is read before `refresh`.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            watch: Watch::default(),
            unseen: None,
            files: BTreeMap::new(),
            links: BTreeSet::new(),
            claims: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            per_sender: HashMap::new(),
            index: Index::new(),
            slot_of_doc: Vec::new(),
            next_conversation: 0,
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The entry that a document belongs to, and which passage of it it is.
    pub(crate) fn of_doc(&self, doc: DocId) -> Option<(&Slot, usize)> {
        let slot = self
            .slots
            .get(*self.slot_of_doc.get(doc as usize)?)?
            .as_ref()?;
        Some((slot, doc.checked_sub(slot.docs.start)? as usize))
    }

    /// All entries, by file name.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.files.values().filter_map(|known| match known.state {
            State::Indexed(slot) => self.slots[slot].as_ref(),
            State::Shadowed { .. } | State::Broken(_) => None,
        })
    }

    /// The entries of a name, by sender.
    pub(crate) fn named(&self, name: &str) -> Vec<&Slot> {
        let files = self
            .claims
            .get(name)
            .into_iter()
            .flat_map(|c| c.values().flatten());
        let slots = files.filter_map(|file| match self.files.get(file)?.state {
            State::Indexed(slot) => self.slots[slot].as_ref(),
            State::Shadowed { .. } | State::Broken(_) => None,
        });
        slots.collect()
    }

    /// How many entries a sender has.
    pub(crate) fn count_of(&self, sender: &str) -> usize {
        self.per_sender.get(sender).copied().unwrap_or_default()
    }

    /// Files that were passed over.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warnings = self.files.iter().filter_map(|(file, known)| {
            let reason = match &known.state {
                State::Broken(reason) => reason.clone(),
                State::Shadowed { name, sender } => {
                    let other = self.winner(name, sender).unwrap_or_default();
                    format!("is named {name:?} like {other}, which is used")
                }
                State::Indexed(_) => return None,
            };
            Some(Warning {
                file: self.folder.join(file),
                reason,
            })
        });
        warnings.collect()
    }

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

    /// Asks what changed, and keeps it until somebody looks.
    fn notice(&mut self) {
        match self.watch.changes(&self.folder) {
            Changes::NoFolder if self.files.is_empty() => self.unseen = Some(BTreeSet::new()),
            Changes::NoFolder | Changes::Unknown => self.unseen = None,
            Changes::Names(names) => {
                if let Some(unseen) = &mut self.unseen {
                    unseen.extend(names);
                }
            }
        }
    }

    /// Reads an entry's file.
    pub(crate) fn read(&self, slot: &Slot) -> Result<Entry, Error> {
        let file = self.folder.join(&slot.file);
        let parsed = disk::read(&file, MAX_FILE_BYTES).and_then(|text| format::parse(&text));
        parsed.map_err(|reason| Error::Broken { file, reason })
    }

    /// The passage of an entry that a document stands for.
    pub(crate) fn passage(&self, slot: &Slot, passage: usize) -> Option<(Entry, Range<usize>)> {
        let entry = self.read(slot).ok()?;
        let range = passages(&entry.content).into_iter().nth(passage)?;
        Some((entry, range))
    }

    /// Writes an entry into a file, a new one if `None`.
    pub(crate) fn write(&mut self, entry: &Entry, file: Option<&str>) -> Result<(), Error> {
        let text = format::render(entry);
        let file = match file {
            Some(file) => {
                self.write_file(file, &text, Existing::Replace)?;
                file.to_owned()
            }
            None => self.write_new(entry, &text)?,
        };
        self.look_at(OsStr::new(&file), true);
        Ok(())
    }

    fn write_new(&self, entry: &Entry, text: &str) -> Result<String, Error> {
        for file in slug::file_names(&entry.name, &entry.sender) {
            match self.write_file(&file, text, Existing::Refuse) {
                Err(Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(file),
            }
        }
        unreachable!("there is no end of file names")
    }

    fn write_file(&self, file: &str, text: &str, existing: Existing) -> Result<(), Error> {
        let file = self.folder.join(file);
        disk::write(&file, text, existing).map_err(|source| Error::Io {
            action: "write",
            file,
            source,
        })
    }

    /// Deletes an entry's file.
    pub(crate) fn remove(&mut self, file: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
        disk::remove(&path).map_err(|source| Error::Io {
            action: "remove",
            file: path,
            source,
        })?;
        self.look_at(OsStr::new(file), true);
        Ok(())
    }

    fn look_at_everything(&mut self) {
        let mut gone: BTreeSet<String> = self.files.keys().cloned().collect();
        for item in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = item.file_name();
            if disk::is_left_over(&name) {
                // Nobody else writes here while this daemon lives.
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
    fn look_at(&mut self, name: &OsStr, certain: bool) {
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

    fn load(&mut self, file: &str, stamp: Option<Stamp>) {
        let path = self.folder.join(file);
        let text = disk::read(&path, MAX_FILE_BYTES);
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

    /// Enters a readable file; of several with one name the best one counts.
    fn claim(&mut self, file: &str, stamp: Option<Stamp>, entry: &Entry, hash: u64) {
        let before = self.winner(&entry.name, &entry.sender);
        let claims = self.claims.entry(entry.name.clone()).or_default();
        claims
            .entry(entry.sender.clone())
            .or_default()
            .insert(file.to_owned());
        let shadowed = || State::Shadowed {
            name: entry.name.clone(),
            sender: entry.sender.clone(),
        };
        let state = if self.winner(&entry.name, &entry.sender).as_deref() == Some(file) {
            if let Some(before) = before.filter(|before| before != file) {
                self.unindex(&before);
                if let Some(known) = self.files.get_mut(&before) {
                    known.state = shadowed();
                }
            }
            State::Indexed(self.add(file, entry, hash))
        } else {
            shadowed()
        };
        self.files.insert(file.to_owned(), Known { stamp, state });
    }

    /// Of the files of one name and sender: the one that is named after it,
    /// else the first.
    fn winner(&self, name: &str, sender: &str) -> Option<String> {
        let files = self.claims.get(name)?.get(sender)?;
        if files.len() == 1 {
            return files.first().cloned();
        }
        let own = slug::file_names(name, sender)
            .take(2)
            .find(|own| files.contains(own));
        own.or_else(|| files.first().cloned())
    }

    fn drop_file(&mut self, file: &str) {
        self.links.remove(file);
        self.forget(file);
    }

    fn forget(&mut self, file: &str) {
        let slot = self.unindex(file);
        let known = self.files.remove(file);
        let (name, sender) = match (slot, known.map(|known| known.state)) {
            (Some(slot), _) => (slot.name, slot.sender),
            (None, Some(State::Shadowed { name, sender })) => (name, sender),
            (None, Some(State::Broken(_) | State::Indexed(_)) | None) => return,
        };
        if let Some(claims) = self.claims.get_mut(&name) {
            if let Some(files) = claims.get_mut(&sender) {
                files.remove(file);
            }
            claims.retain(|_, files| !files.is_empty());
            if claims.is_empty() {
                self.claims.remove(&name);
            }
        }
        // The next one of that name comes out of the shadow.
        if let Some(heir) = self.winner(&name, &sender)
            && matches!(
                self.files.get(&heir),
                Some(Known {
                    state: State::Shadowed { .. },
                    ..
                })
            )
        {
            self.load(&heir, stamp(&self.folder.join(&heir)));
        }
    }

    fn add(&mut self, file: &str, entry: &Entry, hash: u64) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let session = self.index.sessions();
        let conversation = self.next_conversation;
        self.next_conversation = self.next_conversation.wrapping_add(1);
        let mut docs: Option<Range<DocId>> = None;
        for (at, range) in passages(&entry.content).into_iter().enumerate() {
            let passage = &entry.content[range];
            let text = match at {
                0 => format!("{}\n{}\n{passage}", entry.name, entry.description),
                _ => passage.to_owned(),
            };
            let document = Document {
                conversation,
                session,
                text: &text,
                day: None,
                speaker: "",
            };
            let Some(doc) = self.index.append(&document) else {
                break;
            };
            self.slot_of_doc.push(slot);
            docs = Some(docs.map_or(doc, |docs| docs.start)..doc + 1);
        }
        *self.per_sender.entry(entry.sender.clone()).or_default() += 1;
        let at = if entry.updated.is_empty() {
            &entry.created
        } else {
            &entry.updated
        };
        self.slots[slot] = Some(Slot {
            file: file.to_owned(),
            name: entry.name.clone(),
            sender: entry.sender.clone(),
            shared: entry.shared,
            at: at.clone(),
            hash,
            docs: docs.unwrap_or(0..0),
        });
        slot
    }

    /// Takes a file's entry out of the index.
    fn unindex(&mut self, file: &str) -> Option<Slot> {
        let State::Indexed(at) = self.files.get(file)?.state else {
            return None;
        };
        let slot = self.slots.get_mut(at)?.take()?;
        self.free.push(at);
        for doc in slot.docs.clone() {
            self.index.remove(doc);
        }
        if let Some(count) = self.per_sender.get_mut(&slot.sender) {
            *count -= 1;
            if *count == 0 {
                self.per_sender.remove(&slot.sender);
            }
        }
        Some(slot)
    }

    fn compact(&mut self) {
        let renumbered = self.index.compact();
        let mut slot_of_doc = Vec::with_capacity(self.index.len());
        for (old, new) in renumbered.iter().enumerate() {
            if new.is_some() {
                slot_of_doc.push(self.slot_of_doc[old]);
            }
        }
        self.slot_of_doc = slot_of_doc;
        for slot in self.slots.iter_mut().flatten() {
            // An entry is removed whole, so its passages stay together.
            let start = renumbered
                .get(slot.docs.start as usize)
                .copied()
                .flatten()
                .unwrap_or(0);
            slot.docs = start..start + slot.docs.end.saturating_sub(slot.docs.start);
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let changed = meta.modified().ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
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

#[cfg(test)]
mod tests;
