//! What runs changed among files, so that a person can look at it and take it
//! back.
//!
//! ```text
//! journal  what a run changed, line by line
//! found    what lies at a path, told apart and put back
//! tree     the work tree of git around a command
//! undo     what is shown, and what is taken back
//! ```
//!
//! Invariants: a change by a file tool is noted before it is made; of the
//! repository that a command runs in nothing is written, no index, no object,
//! no ref; a file that is not as the run left it is never touched; all that is
//! kept stays within a budget, the oldest run goes first; what cannot be noted
//! keeps no tool from its work, and is said.

mod found;
mod journal;
mod name;
mod tree;
mod undo;

pub(crate) use undo::How;
pub use undo::{FileChange, Kind, RunChanges, UndoRefused, Undone};

use crate::provider::outputs_of;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::tool::Invocation;
use crabtalk_guardian::Children;
use found::{Found, Keep, look};
use journal::{Journal, Line};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tree::{Before, Git, Tree};

/// Bytes of all that is kept: weeks of ordinary work.
const MAX_BYTES: u64 = 512 << 20;

/// Bytes that are written between two counts of them.
const COUNT_EVERY: u64 = 32 << 20;

/// Free space that is left to others, the conversations' logs before all.
const LEAVE_FREE: u64 = 256 << 20;

/// A look that took longer than this holds commands up: for a while the tree is
/// not looked at.
const SLOW: Duration = Duration::from_secs(5);

/// For how long.
const LEFT_ALONE: Duration = Duration::from_secs(600);

/// Trees that are remembered to be slow; the oldest is forgotten.
const MAX_SLOW: usize = 64;

/// Characters of a command that a note tells.
const MAX_COMMAND_CHARS: usize = 80;

/// What runs changed.
#[derive(Clone)]
pub(crate) struct Changes(Arc<Inner>);

struct Inner {
    /// Below `state/`, a folder for each conversation.
    root: PathBuf,
    /// Closed to undoing as it is to tools (GATE-3).
    home: PathBuf,
    user_home: Option<PathBuf>,
    git: Git,
    running: Mutex<Vec<Running>>,
    /// Trees in which a look took long, and when.
    slow: Mutex<Vec<(PathBuf, Instant)>>,
    /// One run is taken back at a time: two could restore each other's files.
    undoing: Mutex<()>,
    next: AtomicU64,
    /// Bytes since the last count; at first there was none.
    written: AtomicU64,
}

/// A command in a work tree.
struct Running {
    id: u64,
    top: PathBuf,
    run: (ConversationKey, u64),
    /// Another run's command ran in the same tree.
    overlapped: bool,
    /// What tools of other runs wrote meanwhile.
    foreign: HashMap<PathBuf, Found>,
}

/// A change by a file tool that is about to be made.
pub(crate) struct Pending {
    inner: Arc<Inner>,
    journal: Journal,
    run: (ConversationKey, u64),
    id: u64,
    path: PathBuf,
}

/// A command that is about to run.
pub(crate) struct Seen {
    inner: Arc<Inner>,
    journal: Journal,
    id: u64,
    top: PathBuf,
    before: Option<Before>,
}

/// The command that a call wants to run, and where.
pub(crate) struct Around {
    inner: Arc<Inner>,
    run: (ConversationKey, u64),
    cwd: PathBuf,
    what: String,
}

impl Changes {
    pub(crate) fn new(
        home: &Path,
        user_home: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        children: Children,
    ) -> Self {
        let root = home.join("state/changes");
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self(Arc::new(Inner {
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
            // Numbers of one daemon are not those of an earlier one.
            next: AtomicU64::new(u64::try_from(since.as_micros()).unwrap_or(0)),
            written: AtomicU64::new(COUNT_EVERY),
        }))
    }

    /// Notes that a file tool is about to change a file. Blocks.
    pub(crate) fn will(&self, call: &Invocation, path: &Path) -> Option<Pending> {
        let inner = &self.0;
        if crate::files::is_below(path, &inner.home) {
            // What lies there is not taken back.
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
                path: path.to_owned().into(),
                before,
                folders: missing.map(|folder| folder.to_owned().into()).collect(),
            }])
        });
        if let Err(why) = noted {
            tracing::warn!(path = %path.display(), why, "a change cannot be taken back");
            let text = format!("{} was changed and not noted: {why}", path.display());
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

    /// What is needed to look around a command.
    pub(crate) fn around(&self, call: &Invocation, cwd: &Path, command: &str) -> Around {
        let mut what: String = command.chars().take(MAX_COMMAND_CHARS).collect();
        if what.len() < command.len() {
            what.push('\u{2026}');
        }
        Around {
            inner: Arc::clone(&self.0),
            run: call.root.clone(),
            cwd: cwd.to_owned(),
            what: what.replace('\n', " "),
        }
    }
}

impl Pending {
    /// Notes what came of it. Blocks.
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
            tracing::warn!(path = %self.path.display(), why, "a change cannot be taken back");
        }
    }
}

impl Around {
    /// Looks at the work tree before the command.
    pub(crate) async fn before(self) -> Option<Seen> {
        let inner = self.inner;
        let journal = inner.journal(&self.run);
        let note = |text: String| {
            let journal = journal.clone();
            // Nothing hangs on it.
            move || drop(journal.write(&[Line::Note { text }]))
        };
        let (of, cwd) = (Arc::clone(&inner), self.cwd.clone());
        let tree = tokio::task::spawn_blocking(move || {
            of.has_room()
                .map(|()| Tree::of(&cwd, of.user_home.as_deref()))
        });
        let tree = match tree.await.map_err(|e| e.to_string()).and_then(|tree| tree) {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                let text = format!(
                    "what commands changed in {}, which is no git repository, is not known",
                    self.cwd.display()
                );
                let _ = tokio::task::spawn_blocking(note(text)).await;
                return None;
            }
            Err(why) => {
                let _ = tokio::task::spawn_blocking(note(why)).await;
                return None;
            }
        };
        if inner.is_slow(&tree.top) {
            let text = format!(
                "what commands changed in {} is not known: looking takes too long there",
                tree.top.display()
            );
            let _ = tokio::task::spawn_blocking(note(text)).await;
            return None;
        }
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        let top = tree.top.clone();
        let folder = journal.folder().join(format!("before-{id}"));
        inner.begin(id, &top, &self.run);
        let began = Instant::now();
        let before = Before::look(&inner.git, tree, folder).await;
        if began.elapsed() > SLOW {
            inner.note_slow(&top);
        }
        let mut seen = Seen {
            inner,
            journal: journal.clone(),
            id,
            top,
            before: None,
        };
        let line = match before {
            Ok(before) => {
                seen.before = Some(before);
                Line::Began {
                    id,
                    what: self.what,
                    top: seen.top.clone().into(),
                }
            }
            Err(why) => Line::Note {
                text: format!(
                    "what `{}` changed in {} is not known: {why}",
                    self.what,
                    seen.top.display()
                ),
            },
        };
        let written = tokio::task::spawn_blocking(move || journal.write(&[line])).await;
        match written {
            Ok(Ok(())) => Some(seen),
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

impl Seen {
    /// Looks at the work tree after the command.
    pub(crate) async fn after(mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        let changed = before
            .changed(&self.inner.git, self.journal.objects())
            .await;
        let inner = Arc::clone(&self.inner);
        let journal = self.journal.clone();
        let (id, top) = (self.id, self.top.clone());
        let running = inner.end(id);
        let lines = match changed {
            Ok(changed) => {
                let doubt = match running.as_ref().is_some_and(|running| running.overlapped) {
                    true => "another run's command ran in the same folder at the same time",
                    false => "",
                };
                let foreign = running.as_ref().map(|running| &running.foreign);
                let mut lines = Vec::new();
                for file in changed {
                    let wrote = foreign.and_then(|foreign| foreign.get(&file.path));
                    if wrote.is_some_and(|wrote| wrote.is(&file.after)) {
                        // Another run's tool did, and noted it.
                        continue;
                    }
                    if let Some(running) = &running {
                        inner.count(&file.before, &running.run);
                        inner.count(&file.after, &running.run);
                    }
                    let doubt = match wrote {
                        Some(_) => "another run changed it at the same time",
                        None => doubt,
                    };
                    lines.push(Line::Changed {
                        id,
                        path: file.path.into(),
                        before: file.before,
                        after: file.after,
                        top: top.clone().into(),
                        doubt: doubt.to_owned(),
                    });
                }
                lines
            }
            Err(why) => vec![Line::Note {
                text: format!(
                    "what a command changed in {} is not known: {why}",
                    top.display()
                ),
            }],
        };
        let lines = lines
            .into_iter()
            .chain([Line::Ended { id }])
            .collect::<Vec<_>>();
        let written = tokio::task::spawn_blocking(move || journal.write(&lines)).await;
        if let Ok(Err(why)) = written {
            tracing::warn!(why, "what a command changed cannot be taken back");
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.inner.end(self.id);
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self, key: &ConversationKey) -> PathBuf {
        outputs_of(&self.root, key)
    }

    fn journal(&self, (key, run): &(ConversationKey, u64)) -> Journal {
        Journal::at(self.folder(key).join(run.to_string()))
    }

    fn slow(&self) -> MutexGuard<'_, Vec<(PathBuf, Instant)>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether looking at a tree took long a while ago.
    fn is_slow(&self, top: &Path) -> bool {
        let mut slow = self.slow();
        slow.retain(|(_, since)| since.elapsed() < LEFT_ALONE);
        slow.iter().any(|(known, _)| known == top)
    }

    fn note_slow(&self, top: &Path) {
        let mut slow = self.slow();
        if slow.len() == MAX_SLOW {
            slow.remove(0);
        }
        slow.push((top.to_owned(), Instant::now()));
    }

    fn begin(&self, id: u64, top: &Path, run: &(ConversationKey, u64)) {
        let mut all = self.running();
        let mut overlapped = false;
        for other in &mut *all {
            let same_files = other.top.starts_with(top) || top.starts_with(&other.top);
            if same_files && other.run != *run {
                other.overlapped = true;
                overlapped = true;
            }
        }
        all.push(Running {
            id,
            top: top.to_owned(),
            run: run.clone(),
            overlapped,
            foreign: HashMap::new(),
        });
    }

    fn end(&self, id: u64) -> Option<Running> {
        let mut all = self.running();
        let at = all.iter().position(|running| running.id == id)?;
        Some(all.swap_remove(at))
    }

    /// Whether the disk has room for more than the logs.
    fn has_room(&self) -> Result<(), String> {
        let there = self.root.ancestors().find(|folder| folder.exists());
        let stat = rustix::fs::statvfs(there.unwrap_or(&self.home));
        match stat {
            Ok(stat) if stat.f_bavail.saturating_mul(stat.f_frsize) < LEAVE_FREE => {
                Err("the disk is nearly full, and contents are not kept".to_owned())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts what was kept, and makes room once there is much of it.
    fn count(&self, found: &Found, run: &(ConversationKey, u64)) {
        let size = match found {
            Found::File { size, .. } => *size,
            Found::Nothing | Found::Link { .. } | Found::Unkept { .. } => 0,
        };
        let written = self.written.fetch_add(size, Ordering::Relaxed) + size;
        if written >= COUNT_EVERY {
            self.written.store(0, Ordering::Relaxed);
            let own = self.journal(run);
            let in_use: Vec<PathBuf> = self
                .running()
                .iter()
                .map(|running| self.journal(&running.run).folder().to_owned())
                .chain([own.folder().to_owned()])
                .collect();
            make_room(&self.root, MAX_BYTES, &in_use);
        }
    }
}

/// Removes the oldest runs until what is kept takes three quarters of what it
/// may; nothing if it takes less than that.
fn make_room(root: &Path, most: u64, in_use: &[PathBuf]) {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut runs = Vec::new();
    for run in entries(root).iter().flat_map(|folder| entries(folder)) {
        let Ok(changed) = run
            .join("changes.jsonl")
            .metadata()
            .and_then(|m| m.modified())
        else {
            continue;
        };
        runs.push((changed, bytes(&run), run));
    }
    let mut total: u64 = runs.iter().map(|(_, bytes, _)| bytes).sum();
    if total <= most {
        return;
    }
    runs.sort();
    for (_, bytes, run) in runs {
        if total <= most / 4 * 3 {
            return;
        }
        if !in_use.contains(&run) && std::fs::remove_dir_all(&run).is_ok() {
            total -= bytes;
        }
    }
}

/// Bytes below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests;
