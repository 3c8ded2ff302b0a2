//! The state of a memory; one thread at a time works on it.

use super::found::{FoundTurn, MAX_SNIPPET_BYTES, Match, Rank};
use super::page::Page;
use super::{FoundIn, Hit, NewEntry, Parts};
use crate::archives::{self, Sample};
use crate::entries::{Entries, Entry, Slot};
use crate::index::{DocId, Level, Query, Shard, search};
use crate::view::of_owner;
use crate::{Error, Viewer, render};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Maximum entries of a sender without an owner's authority: enough for years, and too
/// few to fill the disk.
pub(super) const MAX_PER_GUEST: usize = 1_000;

pub(crate) struct Inner {
    pub(super) soul: Page,
    pub(super) overview: Page,
    pub(super) turns: Arc<Semaphore>,
    pub(super) parts: Parts,
    pub(super) state: Mutex<State>,
}

pub(crate) struct State {
    pub(super) entries: Entries,
}

impl Inner {
    /// The state is derived, so it remains usable after a panic in another
    /// thread.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a filter for the documents of entries that a viewer sees.
    fn sees<'a>(&'a self, entries: &'a Entries, viewer: &'a Viewer) -> impl Fn(DocId) -> bool + 'a {
        let owners = &*self.parts.owners;
        move |doc| {
            let found = entries.of_doc(doc);
            found.is_some_and(|(slot, _)| viewer.sees(slot, owners))
        }
    }

    /// Finds the best results among entries and candidates from archives.
    pub(super) fn find(
        &self,
        viewer: &Viewer,
        query: &Query,
        limit: usize,
        sample: &Sample,
    ) -> Vec<Match> {
        let state = &mut *self.state();
        state.entries.refresh();
        let sees = self.sees(&state.entries, viewer);
        let shards = [entries_shard(&state.entries, &sees), sample.shard()];
        let mut seen = HashSet::new();
        let mut matches = Vec::new();
        // Passages of one turn count once, so request more than the limit.
        for found in search(&shards, query, limit * 3) {
            let rank = Rank {
                score: found.score,
                coverage: found.coverage,
            };
            matches.extend(match found.shard {
                0 => entry_hit(&state.entries, found.doc, query, rank).map(Match::Entry),
                _ => {
                    let passage = sample.candidate(found.doc).cloned();
                    let turn = passage.map(|passage| FoundTurn { passage, rank });
                    let turn = turn.filter(|turn| seen.insert(turn.place()));
                    turn.map(|turn| Match::Turn(Box::new(turn)))
                }
            });
            if matches.len() == limit {
                break;
            }
        }
        matches
    }

    pub(super) fn remember(&self, viewer: &Viewer, new: NewEntry) -> Result<(), Error> {
        let owners = &*self.parts.owners;
        let state = &mut *self.state();
        state.entries.refresh();
        let name = new.name.trim().to_owned();
        let named = state.entries.named(&name);
        let own = named
            .iter()
            .find(|slot| slot.sender == viewer.sender.as_str());
        let own = own.or_else(|| {
            named
                .iter()
                .find(|slot| viewer.is_owner && of_owner(slot, owners))
        });
        let taken = || named.iter().any(|slot| viewer.sees(slot, owners));
        let own = match own {
            None if !viewer.is_owner && taken() => return Err(Error::NotYours(name)),
            own => own.copied(),
        };
        let sender = viewer.sender.as_str();
        if own.is_none() && !viewer.is_owner && state.entries.count_of(sender) >= MAX_PER_GUEST {
            return Err(Error::TooMany {
                sender: sender.to_owned(),
                limit: MAX_PER_GUEST,
            });
        }
        let old = own.map(|slot| state.entries.read(slot)).transpose()?;
        let file = own.map(|slot| slot.file.clone());
        let now = self.parts.clock.now().to_string();
        let old = old.unwrap_or_else(|| Entry {
            created: now.clone(),
            ..Entry::default()
        });
        let entry = Entry {
            name,
            description: new.description.trim().to_owned(),
            agent: viewer.conversation.agent.as_str().to_owned(),
            sender: sender.to_owned(),
            shared: viewer.is_owner && new.shared.unwrap_or(old.shared),
            updated: now,
            content: archives::without_recalled(&new.content),
            ..old
        };
        state.entries.write(&entry, file.as_deref())
    }

    pub(super) fn forget(&self, viewer: &Viewer, name: &str) -> Result<(), Error> {
        let state = &mut *self.state();
        state.entries.refresh();
        let slot = self.choose(&state.entries, viewer, name)?;
        if !viewer.is_owner && slot.sender != viewer.sender.as_str() {
            return Err(Error::NotYours(name.to_owned()));
        }
        let file = slot.file.clone();
        state.entries.remove(&file)
    }

    /// The entry with a name for a viewer, whose own entry precedes others.
    pub(super) fn choose<'a>(
        &self,
        entries: &'a Entries,
        viewer: &Viewer,
        name: &str,
    ) -> Result<&'a Slot, Error> {
        let owners = &*self.parts.owners;
        let mut seen = entries.named(name);
        seen.retain(|slot| viewer.sees(slot, owners));
        let own = seen
            .iter()
            .find(|slot| slot.sender == viewer.sender.as_str());
        let own = own.or_else(|| seen.iter().find(|slot| of_owner(slot, owners)));
        match (own, &seen[..]) {
            (Some(slot), _) | (None, [slot]) => Ok(slot),
            (None, []) => Err(Error::NotFound(name.to_owned())),
            (None, several) => Err(Error::Ambiguous {
                name: name.to_owned(),
                senders: several.iter().map(|slot| slot.sender.clone()).collect(),
            }),
        }
    }
}

fn entries_shard<'a>(entries: &'a Entries, keep: &'a dyn Fn(DocId) -> bool) -> Shard<'a> {
    Shard {
        index: entries.index(),
        level: Level::Session,
        said: false,
        keep,
        whole: None,
    }
}

fn entry_hit(entries: &Entries, doc: DocId, query: &Query, rank: Rank) -> Option<Hit> {
    let (slot, passage) = entries.of_doc(doc)?;
    let (entry, range) = entries.passage(slot, passage)?;
    let text = &entry.content[range];
    let room = MAX_SNIPPET_BYTES
        .saturating_sub(entry.description.len())
        .max(MAX_SNIPPET_BYTES / 2);
    let text = render::snippet(text, query, room);
    let snippet = match (entry.description.is_empty(), text.is_empty()) {
        (true, _) => text,
        (false, true) => entry.description,
        (false, false) => {
            let description = entry.description.trim_end_matches('.');
            format!("{description}. {text}")
        }
    };
    Some(Hit {
        source: FoundIn::Entry {
            agent: entry.agent.clone(),
            sender: slot.sender.clone(),
        },
        title: entry.name,
        snippet,
        score: rank.score,
        coverage: rank.coverage,
        at: slot.at.clone(),
    })
}
