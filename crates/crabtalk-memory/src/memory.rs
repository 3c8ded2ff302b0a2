//! One memory over entries and archives.
//!
//! Invariants: what a viewer may not see leaves no trace in what the viewer
//! gets. Every write ends in a thread of its own, so that a dropped future
//! halves none. The lock is held by such threads alone.

mod found;
mod inner;
mod page;

use crate::archives::{self, ArchiveIndex};
use crate::entries::{Entries, Entry, MAX_CONTENT_BYTES, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use crate::index::{Query, Scratch};
use crate::{Error, Owners, Viewer, Warning};
use crabtalk_domain::storage::Storage;
use crabtalk_domain::{Clock, ConversationKey};
use crabtalk_files::Existing;
use found::Candidate;
pub(crate) use found::Rank;
use inner::{Inner, State};
pub(crate) use page::told;
use page::{MAX_PAGE_BYTES, Page};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Most hits of one recall: more is reading, not remembering.
pub const MAX_HITS: usize = 50;
/// Conversations of one agent that a recall over all of them looks into.
const MAX_CONVERSATIONS: usize = 256;

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
pub enum FoundIn {
    /// An entry.
    Entry {
        /// The agent that noted it; empty when a person wrote the file.
        agent: String,
        /// Who caused it; empty when a person wrote the file.
        sender: String,
    },
    /// A turn of an archive.
    Archive {
        /// The conversation whose archive it is.
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
    /// Where it was found.
    pub source: FoundIn,
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

/// What a recall found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Whether all archives were searched: some may not be indexed yet, or
    /// cannot be read.
    pub complete: bool,
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
    /// What is indexed of their archives.
    pub archives: ArchiveIndex,
    /// Who is an owner.
    pub owners: Arc<dyn Owners>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// How long a recall that somebody asked for waits for archives that are not
/// indexed yet. They are as a rule; else this is time for some hundred
/// megabytes, and what is left follows later.
const ASKED_WAIT: Duration = Duration::from_secs(5);

/// Postings of archives that such a recall reads at most: a tenth of a second.
const ASKED_POSTINGS: usize = 2_000_000;

/// The same for the recall before a run, whose answer waits for it: a
/// millisecond. Words that stand in more turns tell little.
pub(crate) const UNASKED_POSTINGS: usize = 8_000;

/// Threads that look at once: most of them would wait for the same lock, and
/// where a disk does not answer, threads are left for others.
const MAX_AT_ONCE: usize = 2;

/// Memory. Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

impl Memory {
    /// A memory over a configuration folder. Reads nothing yet.
    pub fn new(parts: Parts) -> Self {
        let entries = Entries::new(parts.config.join("memory/entries"));
        Self(Arc::new(Inner {
            soul: Page::new(parts.config.join("Crab.md")),
            overview: Page::new(parts.config.join("memory/MEMORY.md")),
            turns: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            parts,
            state: Mutex::new(State {
                entries,
                scratch: Scratch::default(),
            }),
        }))
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    /// `MEMORY.md`.
    pub fn overview_path(&self) -> PathBuf {
        self.0.overview.file().to_owned()
    }

    /// Whoever stands behind a run.
    pub fn viewer(&self, key: &ConversationKey, origin: &crabtalk_domain::Origin) -> Viewer {
        Viewer::of(key, origin, &*self.0.parts.owners)
    }

    /// The index of archives.
    pub fn archives(&self) -> &ArchiveIndex {
        &self.0.parts.archives
    }

    /// Finds what is known. Archives that cannot be read are reported to the log
    /// and left out.
    pub async fn recall(&self, viewer: &Viewer, query: &str, limit: usize) -> Recalled {
        let keys = self.conversations(viewer).await;
        let until = Instant::now() + ASKED_WAIT;
        let mut complete = true;
        for key in &keys {
            complete &= self.archives().catch_up(key, until).await;
        }
        let look = self.look(viewer, keys, query, limit, ASKED_POSTINGS, |_, _| true);
        Recalled {
            hits: look.await,
            complete,
        }
    }

    /// Looks into entries and into what is indexed of these archives. Of what
    /// `keep` drops, knowing it and the best, no text is read.
    pub(crate) async fn look(
        &self,
        viewer: &Viewer,
        keys: Vec<ConversationKey>,
        query: &str,
        limit: usize,
        postings: usize,
        keep: impl Fn(Rank, Rank) -> bool,
    ) -> Vec<Hit> {
        let limit = limit.min(MAX_HITS);
        let query = Arc::new(self.query(query));
        if limit == 0 || query.is_empty() {
            return Vec::new();
        }
        let (viewer, asked, keys) = (viewer.clone(), Arc::clone(&query), Arc::new(keys));
        let of = Arc::clone(&keys);
        let mut found = self
            .blocking(move |inner| inner.find(&viewer, &asked, limit, &of, postings))
            .await;
        if let Some(best) = found.first().map(Candidate::rank) {
            found.retain(|candidate| keep(candidate.rank(), best));
        }
        self.read_turns(found, &keys, &query).await
    }

    /// Reads the texts of turns. What the index says of a turn that is no more
    /// is dropped, and the index made again.
    async fn read_turns(
        &self,
        found: Vec<Candidate>,
        keys: &[ConversationKey],
        query: &Query,
    ) -> Vec<Hit> {
        let mut texts = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            let own = found.iter().filter_map(Candidate::turn);
            let indexes: Vec<u64> = own.filter(|t| t.key == at).map(|t| t.entry).collect();
            if indexes.is_empty() {
                continue;
            }
            let entries = self.0.parts.storage.entries(key, &indexes).await;
            let entries = entries.unwrap_or_else(|error| {
                tracing::warn!(conversation = %key, %error, "recall goes without its archives");
                Vec::new()
            });
            texts.extend(entries.into_iter().map(|e| ((at, e.index), e.message)));
        }
        let mut hits = Vec::with_capacity(found.len());
        let mut wrong = HashSet::new();
        for candidate in found {
            match candidate {
                Candidate::Entry(hit) => hits.push(hit),
                Candidate::Turn(turn) => {
                    let message = texts.get(&(turn.key, turn.entry));
                    let key = &keys[turn.key];
                    match message.and_then(|message| turn.hit(key, message, query)) {
                        Some(hit) => hits.push(hit),
                        None => {
                            wrong.insert(key);
                        }
                    }
                }
            }
        }
        for key in wrong {
            self.archives().discard(key);
        }
        hits
    }

    /// Whether there is certainly nothing to recall for somebody whose
    /// conversation has no archives. Touches no more of the disk than asking
    /// whether entries changed: a turn that recalls nothing waits for nothing.
    pub(crate) async fn knows_nothing(&self, viewer: &Viewer, query: &str) -> bool {
        if self.settings().recall_scope != RecallScope::Conversation {
            return false;
        }
        let (this, viewer, query) = (self.clone(), viewer.clone(), query.to_owned());
        self.blocking(move |_| this.knows_nothing_now(&viewer, &query))
            .await
    }

    /// The same, for a thread that may wait.
    pub(crate) fn knows_nothing_now(&self, viewer: &Viewer, query: &str) -> bool {
        let own = self.settings().recall_scope == RecallScope::Conversation;
        own && self.0.knows_nothing(viewer, || self.query(query))
    }

    fn query(&self, text: &str) -> Query {
        let now = self.0.parts.clock.now();
        let today = now.to_zoned(crabtalk_files::local_zone()).date();
        Query::parse(&archives::without_recalled(text), Some(today))
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
            warnings.extend(
                [&inner.overview, &inner.soul]
                    .into_iter()
                    .filter_map(Page::warning),
            );
            warnings
        })
        .await
    }

    /// `MEMORY.md`; empty if there is none or it cannot be read.
    pub async fn overview(&self) -> Arc<str> {
        self.blocking(|inner| inner.overview.text()).await
    }

    /// `Crab.md`; empty if there is none or it cannot be read.
    pub async fn soul(&self) -> Arc<str> {
        self.blocking(|inner| inner.soul.text()).await
    }

    /// `Crab.md`, where that is known without opening it.
    pub(crate) fn known_soul(&self) -> Option<Arc<str>> {
        self.0.soul.known()
    }

    /// `MEMORY.md`, where that is known without opening it.
    pub(crate) fn known_overview(&self) -> Option<Arc<str>> {
        self.0.overview.known()
    }

    /// Overwrites `MEMORY.md`.
    pub async fn write_overview(&self, viewer: &Viewer, content: String) -> Result<(), Error> {
        if !viewer.is_owner {
            return Err(Error::OwnersOnly(
                "change MEMORY.md; remember an entry instead",
            ));
        }
        if content.len() > MAX_PAGE_BYTES {
            return Err(Error::TooLarge {
                what: "content",
                name: "MEMORY.md".into(),
                bytes: content.len(),
                limit: MAX_PAGE_BYTES,
            });
        }
        let file = self.overview_path();
        self.blocking(move |_| {
            let written = crabtalk_files::write(&file, content.as_bytes(), Existing::Replace);
            written.map_err(|source| Error::Io {
                action: "write",
                file,
                source,
            })
        })
        .await
    }

    /// Whose archives the viewer looks into.
    pub(crate) async fn conversations(&self, viewer: &Viewer) -> Vec<ConversationKey> {
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
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> T {
        let inner = self.0.clone();
        let turn = Arc::clone(&inner.turns).acquire_owned().await;
        let turn = turn.expect("the semaphore is never closed");
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&inner)
        });
        match done.await {
            Ok(done) => done,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
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

#[cfg(test)]
mod tests;
