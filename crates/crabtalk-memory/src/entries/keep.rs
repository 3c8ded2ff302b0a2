//! Selects the file of an entry and indexes it.
//!
//! Invariant: of several files of one name and sender one counts, and the
//! others take its place in order when it goes.

use super::look::{Stamp, stamp};
use super::{Entries, Entry, Known, Slot, State, slug};
use crate::index::{DocId, Document};
use crate::text::passages;
use std::ops::Range;

impl Entries {
    /// Enters a readable file; of several with one name the best one counts.
    pub(super) fn claim(&mut self, file: &str, stamp: Option<Stamp>, entry: &Entry, hash: u64) {
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
    pub(super) fn winner(&self, name: &str, sender: &str) -> Option<String> {
        let files = self.claims.get(name)?.get(sender)?;
        if files.len() == 1 {
            return files.first().cloned();
        }
        let own = slug::file_names(name, sender)
            .take(2)
            .find(|own| files.contains(own));
        own.or_else(|| files.first().cloned())
    }

    pub(super) fn drop_file(&mut self, file: &str) {
        self.links.remove(file);
        self.forget(file);
    }

    pub(super) fn forget(&mut self, file: &str) {
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
        // The next entry with this name is no longer shadowed.
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

    pub(super) fn compact(&mut self) {
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
