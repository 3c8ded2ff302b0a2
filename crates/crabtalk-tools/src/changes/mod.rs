//! Records the changes of runs to files, shows them and undoes them.
//!
//! ```text
//! journal  the entries of a run, and their sum
//! found    the state of a path: identified, stored and restored
//! command  the changes of a command to its work tree
//! tree     a git work tree, and its changed files
//! room     the budget of stored contents
//! undo     shows and undoes the changes of a run
//! ```
//!
//! Invariants: a change by a file tool is recorded before it is made; this module
//! never writes to the repository of a command; undo does not touch a file that changed
//! after the run; stored contents stay within a budget, and the oldest
//! run is removed first; a change that cannot be recorded is made anyway, and
//! noted.

mod command;
mod found;
mod journal;
mod room;
mod tree;
mod undo;

pub(crate) use command::Around;
pub(crate) use undo::How;
pub use undo::{FileChange, Kind, RunChanges, UndoRefused, Undone};

use crate::outputs::outputs_of;
use command::Running;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::ChangeJournal;
use crabtalk_domain::tool::Invocation;
use crabtalk_guardian::Children;
use found::{Keep, look};
use journal::{Journal, Line};
use room::COUNT_EVERY;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tree::Git;

#[derive(Clone)]
pub(crate) struct Changes(Arc<Inner>);

struct Inner {
    port: Arc<dyn ChangeJournal>,
    /// The folder below `state/`, with a folder for each conversation.
    root: PathBuf,
    /// The home, which undo and tools must not access (GATE-3).
    home: PathBuf,
    user_home: Option<PathBuf>,
    git: Git,
    running: Mutex<Vec<Running>>,
    /// Slow trees, with the time of the slow examination.
    slow: Mutex<Vec<(PathBuf, Instant)>>,
    /// Serializes undos, since two could restore each other's files.
    undoing: Mutex<()>,
    next: AtomicU64,
    /// Bytes written since the last count; initially large enough to force one.
    written: AtomicU64,
}

/// A change that a file tool is about to make.
pub(crate) struct Pending {
    inner: Arc<Inner>,
    journal: Journal,
    run: (ConversationKey, u64),
    id: u64,
    path: PathBuf,
}

impl Changes {
    pub(crate) fn new(
        port: Arc<dyn ChangeJournal>,
        home: &Path,
        user_home: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        children: Children,
    ) -> Self {
        let root = home.join("state/changes");
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self(Arc::new(Inner {
            port,
            home: home.to_owned(),
            user_home,
            git: Git {
                children,
                environment,
                folder: root.join("settings"),
            },
            root,
            running: Mutex::default(),
            slow: Mutex::default(),
            undoing: Mutex::default(),
            // Numbers must not repeat those of an earlier daemon.
            next: AtomicU64::new(u64::try_from(since.as_micros()).unwrap_or(0)),
            written: AtomicU64::new(COUNT_EVERY),
        }))
    }

    /// Records that a file tool is about to change a file. Blocks.
    pub(crate) fn will(&self, call: &Invocation, path: &Path) -> Option<Pending> {
        let inner = &self.0;
        if crate::files::is_below(path, &inner.home) {
            // Changes to files in the home cannot be undone.
            return None;
        }
        let journal = inner.journal(&call.root);
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        let noted = inner.has_room().and_then(|()| {
            let mut room = found::MAX_FILE_BYTES;
            let before = look(path, &mut Keep::In(&journal.objects(), &mut room))?;
            inner.count(&before, &call.root);
            let missing = path.ancestors().skip(1);
            let missing = missing.take_while(|folder| folder.symlink_metadata().is_err());
            journal.write(&[Line::Will {
                id,
                path: path.to_owned(),
                before,
                folders: missing.map(Path::to_owned).collect(),
            }])
        });
        if let Err(why) = noted {
            tracing::warn!(path = %path.display(), why, "a change cannot be undone");
            let text = format!("a change of {} was not recorded: {why}", path.display());
            // The disk may be full.
            let _ = journal.write(&[Line::Note { text }]);
            return None;
        }
        Some(Pending {
            inner: Arc::clone(inner),
            journal,
            run: call.root.clone(),
            id,
            path: path.to_owned(),
        })
    }
}

impl Pending {
    /// Records the outcome. Blocks.
    pub(crate) fn done(self, made: bool) {
        let after = match made {
            true => {
                let mut room = found::MAX_FILE_BYTES;
                look(
                    &self.path,
                    &mut Keep::In(&self.journal.objects(), &mut room),
                )
            }
            false => {
                let _ = self.journal.write(&[Line::Not { id: self.id }]);
                return;
            }
        };
        let noted = after.and_then(|after| {
            self.inner.count(&after, &self.run);
            for running in &mut *self.inner.running() {
                if running.run != self.run && self.path.starts_with(&running.top) {
                    running.foreign.insert(self.path.clone(), after.clone());
                }
            }
            self.journal.write(&[Line::Did { id: self.id, after }])
        });
        if let Err(why) = noted {
            tracing::warn!(path = %self.path.display(), why, "a change cannot be undone");
        }
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self, run: &(ConversationKey, u64)) -> Journal {
        let folder = outputs_of(&self.root, &run.0).join(run.1.to_string());
        Journal::new(Arc::clone(&self.port), run.clone(), folder)
    }
}

#[cfg(test)]
mod tests;
