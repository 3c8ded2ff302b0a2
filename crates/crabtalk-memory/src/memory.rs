//! One memory over entries and archives.
//!
//! Invariants: what a viewer may not see leaves no trace in what the viewer
//! gets. Every write ends in a thread of its own, so that a dropped future
//! halves none. The lock is held by such threads alone.

use crate::archives::{self, Archives, Update};
use crate::disk::{self, Existing};
use crate::entries::{
    Entries, Entry, MAX_CONTENT_BYTES, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES, Slot,
};
use crate::index::{Features, Level, Query, Shard, search};
use crate::view::of_owner;
use crate::{Error, Owners, Viewer, Warning, render};
use crabtalk_domain::storage::Storage;
use crabtalk_domain::{Clock, ConversationKey};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most hits of one recall: more is reading, not remembering.
pub const MAX_HITS: usize = 50;
/// Bytes of a hit's text.
const MAX_SNIPPET_BYTES: usize = 1_000;
/// Entries of one sender without the owner's authority: enough for years of
/// talk, and no way to fill the disk.
const MAX_PER_GUEST: usize = 1_000;
/// Conversations of one agent that a recall over all of them looks into.
const MAX_CONVERSATIONS: usize = 256;
/// Largest `MEMORY.md` and `Crab.md`: both are part of every request.
pub(crate) const MAX_PAGE_BYTES: u64 = 64 * 1024;

/// Whose archives a recall looks into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecallScope {
    /// Those of its conversation.
    #[default]
    Conversation,
    /// Those of all conversations of its agent, whoever asks: the owner who
    /// configures this opens them to everybody that talks to the agent.
    Agent,
}

/// The `[memory]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether there are blocks and tools at all.
    pub enabled: bool,
    /// Hits of an automatic recall, and of the tool unless it says otherwise.
    pub recall_limit: usize,
    /// Whether file tools may edit `Crab.md`.
    pub soul_editable: bool,
    /// Whose archives are recalled.
    pub recall_scope: RecallScope,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            recall_limit: 5,
            soul_editable: false,
            recall_scope: RecallScope::Conversation,
        }
    }
}

/// Where a hit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An entry.
    Entry {
        /// Who caused it; empty when a person wrote the file.
        sender: String,
    },
    /// A turn of an archive.
    Archive {
        /// Whose.
        conversation: ConversationKey,
        /// Which, from 1.
        index: u32,
        /// Who spoke.
        speaker: String,
    },
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Where.
    pub origin: Origin,
    /// The entry's name or the archive's title.
    pub title: String,
    /// The words that were found, as they stand there.
    pub snippet: String,
    /// For ordering.
    pub score: f32,
    /// Which part of the query stands there, about 0 to 1.
    pub coverage: f32,
    /// RFC 3339 instant; empty if unknown.
    pub at: String,
}

/// What `remember` is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewEntry {
    /// Its identity.
    pub name: String,
    /// One line that helps to find it.
    pub description: String,
    /// What it says.
    pub content: String,
    /// Whether it reaches other senders; `None` leaves it as it is.
    pub shared: Option<bool>,
}

/// Everything that memory needs of the outside.
pub struct Parts {
    /// The `config` folder of the home.
    pub config: PathBuf,
    /// The `[memory]` section.
    pub settings: Settings,
    /// Where conversations are kept.
    pub storage: Arc<dyn Storage>,
    /// Who is an owner.
    pub owners: Arc<dyn Owners>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// Memory. Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    parts: Parts,
    state: Mutex<State>,
}

struct State {
    entries: Entries,
    archives: Archives,
}

impl Memory {
    /// A memory over a configuration folder. Reads nothing yet.
    pub fn new(parts: Parts) -> Self {
        let entries = Entries::new(parts.config.join("memory/entries"));
        let state = State {
            entries,
            archives: Archives::default(),
        };
        Self(Arc::new(Inner {
            parts,
            state: Mutex::new(state),
        }))
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    /// `Crab.md`, for the file tools if `soul_editable`.
    pub fn soul_path(&self) -> PathBuf {
        self.0.parts.config.join("Crab.md")
    }

    /// `MEMORY.md`.
    pub fn overview_path(&self) -> PathBuf {
        self.0.parts.config.join("memory/MEMORY.md")
    }

    /// Whoever stands behind a run.
    pub fn viewer(&self, key: &ConversationKey, origin: &crabtalk_domain::Origin) -> Viewer {
        Viewer::of(key, origin, &*self.0.parts.owners)
    }

    /// Finds what is known, best first. Archives that cannot be read are
    /// reported to the log and left out.
    pub async fn recall(&self, viewer: &Viewer, query: &str, limit: usize) -> Vec<Hit> {
        let limit = limit.min(MAX_HITS);
        let today = self
            .0
            .parts
            .clock
            .now()
            .to_zoned(jiff::tz::TimeZone::system())
            .date();
        let query = Query::parse(&archives::without_recalled(query), Some(today));
        if limit == 0 || query.is_empty() {
            return Vec::new();
        }
        let mut updates = Vec::new();
        for key in self.conversations(viewer).await {
            let known = self.0.state().archives.known(&key);
            match archives::read_new(&*self.0.parts.storage, &key, &known).await {
                Ok(update) => updates.push((key, update)),
                Err(error) => tracing::warn!(conversation = %key, %error, "recall goes without"),
            }
        }
        let viewer = viewer.clone();
        self.blocking(move |inner| inner.recall(&viewer, &query, limit, updates))
            .await
    }

    /// Writes an entry: a new one, or over the viewer's own of that name.
    pub async fn remember(&self, viewer: &Viewer, entry: NewEntry) -> Result<(), Error> {
        check(&entry)?;
        let viewer = viewer.clone();
        self.blocking(move |inner| inner.remember(&viewer, entry))
            .await
    }

    /// Deletes an entry that the viewer may change.
    pub async fn forget(&self, viewer: &Viewer, name: &str) -> Result<(), Error> {
        let (viewer, name) = (viewer.clone(), name.trim().to_owned());
        self.blocking(move |inner| inner.forget(&viewer, &name))
            .await
    }

    /// Reads the entry of a name that the viewer sees.
    pub async fn entry(&self, viewer: &Viewer, name: &str) -> Result<Entry, Error> {
        let (viewer, name) = (viewer.clone(), name.trim().to_owned());
        self.blocking(move |inner| {
            let state = &mut *inner.state();
            state.entries.refresh();
            let slot = inner.choose(&state.entries, &viewer, &name)?;
            state.entries.read(slot)
        })
        .await
    }

    /// Lists the entries that the viewer sees, contents included.
    pub async fn entries(&self, viewer: &Viewer) -> Vec<Entry> {
        let viewer = viewer.clone();
        self.blocking(move |inner| {
            let state = &mut *inner.state();
            state.entries.refresh();
            let owners = &*inner.parts.owners;
            let seen = state
                .entries
                .slots()
                .filter(|slot| viewer.sees(slot, owners));
            seen.filter_map(|slot| state.entries.read(slot).ok())
                .collect()
        })
        .await
    }

    /// Files that were passed over, and why.
    pub async fn warnings(&self) -> Vec<Warning> {
        self.blocking(|inner| {
            let state = &mut *inner.state();
            state.entries.refresh();
            let mut warnings = state.entries.warnings();
            for file in ["memory/MEMORY.md", "Crab.md"] {
                let file = inner.parts.config.join(file);
                if let Err(reason) = disk::read_if_there(&file, MAX_PAGE_BYTES) {
                    warnings.push(Warning { file, reason });
                }
            }
            warnings
        })
        .await
    }

    /// `MEMORY.md`; empty if there is none or it cannot be read.
    pub async fn overview(&self) -> String {
        self.page(self.overview_path()).await
    }

    /// `Crab.md`; empty if there is none or it cannot be read.
    pub async fn soul(&self) -> String {
        self.page(self.soul_path()).await
    }

    /// Overwrites `MEMORY.md`.
    pub async fn write_overview(&self, viewer: &Viewer, content: String) -> Result<(), Error> {
        if !viewer.is_owner {
            return Err(Error::OwnersOnly(
                "change MEMORY.md; remember an entry instead",
            ));
        }
        if content.len() as u64 > MAX_PAGE_BYTES {
            return Err(Error::TooLarge {
                what: "content",
                name: "MEMORY.md".into(),
                bytes: content.len(),
                limit: MAX_PAGE_BYTES as usize,
            });
        }
        let file = self.overview_path();
        self.blocking(move |_| {
            let written = disk::write(&file, &content, Existing::Replace);
            written.map_err(|source| Error::Io {
                action: "write",
                file,
                source,
            })
        })
        .await
    }

    async fn page(&self, file: PathBuf) -> String {
        self.blocking(move |_| read_page(&file)).await
    }

    /// Whose archives the viewer looks into.
    async fn conversations(&self, viewer: &Viewer) -> Vec<ConversationKey> {
        let own = &viewer.conversation;
        if self.settings().recall_scope == RecallScope::Conversation {
            return vec![own.clone()];
        }
        let listed = self
            .0
            .parts
            .storage
            .list(Some(own.agent.as_str()), None)
            .await;
        let listed = listed.unwrap_or_else(|error| {
            tracing::warn!(agent = %own.agent, %error, "recall goes without other conversations");
            Vec::new()
        });
        let mut seen = HashSet::from([own.clone()]);
        let others = listed.into_iter().filter(|s| !s.superseded).map(|s| s.key);
        let others = others
            .filter(|key| seen.insert(key.clone()))
            .take(MAX_CONVERSATIONS - 1);
        std::iter::once(own.clone())
            .chain(others.collect::<Vec<_>>())
            .collect()
    }

    /// Does what touches files or takes the lock for long, off the runtime.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> T {
        let inner = self.0.clone();
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(done) => done,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

impl Inner {
    /// What is behind the lock can be derived again, so a panic elsewhere does
    /// not make it useless.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recall(
        &self,
        viewer: &Viewer,
        query: &Query,
        limit: usize,
        updates: Vec<(ConversationKey, Update)>,
    ) -> Vec<Hit> {
        let state = &mut *self.state();
        let since = state.archives.clock();
        let keys: Vec<ConversationKey> = updates.iter().map(|(key, _)| key.clone()).collect();
        for (key, update) in updates {
            state.archives.apply(&key, update);
        }
        state.archives.shrink(since);
        state.entries.refresh();
        self.find(state, viewer, query, limit, &keys)
    }

    fn find(
        &self,
        state: &State,
        viewer: &Viewer,
        query: &Query,
        limit: usize,
        keys: &[ConversationKey],
    ) -> Vec<Hit> {
        let owners = &*self.parts.owners;
        let sees = |doc| {
            state
                .entries
                .of_doc(doc)
                .is_some_and(|(slot, _)| viewer.sees(slot, owners))
        };
        let mut shards = vec![Shard {
            index: state.entries.index(),
            level: Level::Session,
            features: Features {
                speakers: false,
                dates: false,
            },
            keep: &sees,
        }];
        let indexed: Vec<_> = keys
            .iter()
            .filter_map(|key| Some((key, state.archives.get(key)?)))
            .collect();
        shards.extend(indexed.iter().map(|(_, archives)| Shard {
            index: &archives.index,
            level: Level::Document,
            features: Features {
                speakers: true,
                dates: true,
            },
            keep: &|_| true,
        }));
        let mut seen = HashSet::new();
        let mut hits = Vec::new();
        // Passages of one turn count once, hence more than were asked for.
        for found in search(&shards, query, limit * 3) {
            let hit = match found.shard.checked_sub(1) {
                None => entry_hit(&state.entries, found.doc, query),
                Some(at) => {
                    let (key, archives) = indexed[at];
                    archives
                        .of_doc(found.doc)
                        .filter(|p| seen.insert((at, p.turn_number)))
                        .map(|place| Hit {
                            origin: Origin::Archive {
                                conversation: key.clone(),
                                index: place.archive.index,
                                speaker: place.turn.speaker.clone(),
                            },
                            title: place.archive.title.clone(),
                            snippet: render::snippet(
                                &place.turn.text[place.passage],
                                query,
                                MAX_SNIPPET_BYTES,
                            ),
                            score: 0.0,
                            coverage: 0.0,
                            at: place.turn.at.clone(),
                        })
                }
            };
            let ranked = |hit| Hit {
                score: found.score,
                coverage: found.coverage,
                ..hit
            };
            hits.extend(hit.map(ranked));
        }
        hits.truncate(limit);
        hits
    }

    fn remember(&self, viewer: &Viewer, new: NewEntry) -> Result<(), Error> {
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

    fn forget(&self, viewer: &Viewer, name: &str) -> Result<(), Error> {
        let state = &mut *self.state();
        state.entries.refresh();
        let slot = self.choose(&state.entries, viewer, name)?;
        if !viewer.is_owner && slot.sender != viewer.sender.as_str() {
            return Err(Error::NotYours(name.to_owned()));
        }
        let file = slot.file.clone();
        state.entries.remove(&file)
    }

    /// The entry that a viewer means by a name: the own one first.
    fn choose<'a>(
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

fn entry_hit(entries: &Entries, doc: u32, query: &Query) -> Option<Hit> {
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
        origin: Origin::Entry {
            sender: slot.sender.clone(),
        },
        title: entry.name,
        snippet,
        score: 0.0,
        coverage: 0.0,
        at: slot.at.clone(),
    })
}

fn check(entry: &NewEntry) -> Result<(), Error> {
    let name = entry.name.trim();
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Err(Error::BadName(name.chars().take(MAX_NAME_BYTES).collect()));
    }
    let limits = [
        (
            "description",
            entry.description.len(),
            MAX_DESCRIPTION_BYTES,
        ),
        ("content", entry.content.len(), MAX_CONTENT_BYTES),
    ];
    match limits.into_iter().find(|(_, bytes, limit)| bytes > limit) {
        None => Ok(()),
        Some((what, bytes, limit)) => Err(Error::TooLarge {
            what,
            name: name.to_owned(),
            bytes,
            limit,
        }),
    }
}

fn read_page(file: &Path) -> String {
    match disk::read_if_there(file, MAX_PAGE_BYTES) {
        Ok(text) => text.unwrap_or_default(),
        Err(reason) => {
            tracing::warn!(file = %file.display(), reason, "left out");
            String::new()
        }
    }
}

#[cfg(test)]
mod tests;
