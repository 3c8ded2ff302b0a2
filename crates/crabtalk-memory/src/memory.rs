//! The memory: entries and archives behind one interface.
//!
//! Invariants: entries that a viewer may not see do not influence the viewer's
//! results. Every write completes in a separate thread, so that a dropped future
//! cannot interrupt it. Only such threads take the lock.

mod found;
mod inner;
mod page;
mod recall;

use crate::archives::ArchiveIndex;
use crate::entries::{Entries, Entry, MAX_CONTENT_BYTES, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use crate::{Error, Owners, Viewer, Warning};
use crabtalk_domain::storage::{RecallScope, Storage};
use crabtalk_domain::{Clock, ConversationKey};
use crabtalk_files::Existing;
pub(crate) use found::Rank;
use inner::{Inner, State};
pub(crate) use page::told;
use page::{MAX_PAGE_BYTES, Page};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Maximum number of hits of one recall.
pub const MAX_HITS: usize = 50;

/// The `[memory]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether memory's blocks and tools exist.
    pub enabled: bool,
    /// Default number of hits, for automatic recalls and for the tool.
    pub recall_limit: usize,
    /// Whether file tools may edit `Crab.md`.
    pub soul_editable: bool,
    /// The archives that a recall searches.
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

/// The source of a hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundIn {
    /// An entry.
    Entry {
        /// The agent that wrote the entry; empty if a person wrote the file.
        agent: String,
        /// The sender who caused the entry; empty if a person wrote the file.
        sender: String,
    },
    /// A turn of an archive.
    Archive {
        /// The conversation of the archive.
        conversation: ConversationKey,
        /// The number of the archive, from 1.
        index: u32,
        /// The speaker.
        speaker: String,
    },
}

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The source of the hit.
    pub source: FoundIn,
    /// The entry's name or the archive's title.
    pub title: String,
    /// An excerpt of the text around the matches.
    pub snippet: String,
    /// The score, for ordering.
    pub score: f32,
    /// Share of the query that matches, about 0 to 1.
    pub coverage: f32,
    /// RFC 3339 instant; empty if unknown.
    pub at: String,
}

/// Result of a recall.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// Hits, best first.
    pub hits: Vec<Hit>,
    /// Whether all archives were searched: some may not be indexed yet, or be
    /// unreadable.
    pub complete: bool,
    /// Whether nothing was searched because every query word is too common to
    /// count.
    pub only_common: bool,
}

/// Arguments of `remember`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct NewEntry {
    /// The name of the entry.
    pub name: String,
    /// A line that helps to find it.
    #[serde(default)]
    pub description: String,
    /// The text of the entry.
    pub content: String,
    /// Whether other senders see it; `None` keeps the current setting.
    pub shared: Option<bool>,
}

/// Everything that memory needs from outside.
pub struct Parts {
    /// The `config` folder of the home.
    pub config: PathBuf,
    /// The `[memory]` section.
    pub settings: Settings,
    /// Stores the conversations.
    pub storage: Arc<dyn Storage>,
    /// The index of their archives.
    pub archives: ArchiveIndex,
    /// Decides which senders are owners.
    pub owners: Arc<dyn Owners>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Maximum number of concurrent threads: more would wait for the same lock, and
/// a disk that hangs must not block all threads of the pool.
const MAX_AT_ONCE: usize = 2;

/// Memory. Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

impl Memory {
    /// Creates a memory over a configuration folder. Reads nothing yet.
    pub fn new(parts: Parts) -> Self {
        let entries = Entries::new(parts.config.join("memory/entries"));
        Self(Arc::new(Inner {
            soul: Page::new(parts.config.join("Crab.md")),
            overview: Page::new(parts.config.join("memory/MEMORY.md")),
            turns: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            parts,
            state: Mutex::new(State { entries }),
        }))
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    /// The path of `MEMORY.md`.
    pub fn overview_path(&self) -> PathBuf {
        self.0.overview.file().to_owned()
    }

    /// The viewer of a run.
    pub fn viewer(&self, key: &ConversationKey, origin: &crabtalk_domain::Origin) -> Viewer {
        Viewer::of(key, origin, &*self.0.parts.owners)
    }

    /// The index of archives.
    pub fn archives(&self) -> &ArchiveIndex {
        &self.0.parts.archives
    }

    /// Writes an entry; replaces the viewer's entry with the same name.
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

    /// Reads the entry with a name that the viewer sees.
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

    /// Skipped files, with the reasons.
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

    /// The text of `MEMORY.md`; empty if it is absent or unreadable.
    pub async fn overview(&self) -> String {
        self.blocking(|inner| inner.overview.text()).await
    }

    /// The text of `Crab.md`; empty if it is absent or unreadable.
    pub async fn soul(&self) -> String {
        self.blocking(|inner| inner.soul.text()).await
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

    /// Runs work that accesses files or holds the lock for long, in a blocking thread.
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
