//! Which configuration counts: what an owner wrote, and not what a command of
//! an agent did to it meanwhile (RFC 0230).
//!
//! Invariants: before a command runs outside the sandbox, everything that
//! decides over agents is recorded; what differs when it is over, or whenever
//! somebody reads it meanwhile, is taken out of its place, kept in
//! `state/held`, and put there by an owner's word alone. A restart finds what
//! a window left open and what waits.

mod held;
mod shown;
mod tree;

use crabtalk_domain::{BoxFuture, Clock, ConversationKey, SystemClock, stamp};
use crabtalk_files::Existing;
use crabtalk_tools::CommandWatch;
use held::{Change, Held};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tree::Tree;

/// What decides over agents, below the home.
const ROOTS: [&str; 2] = ["config", "state/trust.toml"];

/// Refused changes that are kept for a person to look at.
const MAX_REFUSED: usize = 100;

/// Largest note of whose command runs: two names.
const MAX_MARKER_BYTES: u64 = 16 * 1024;

/// Changes that wait at a time: more than anybody looks through.
const MAX_HELD: usize = 100;

/// What an owner is asked.
pub(crate) struct Question {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) sender: String,
    pub(crate) detail: String,
}

/// Watches over the files that decide over agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Accepted(Arc<Inner>);

struct Inner {
    home: PathBuf,
    state: Arc<Mutex<State>>,
    /// Whether a command may have changed something since the last look.
    watched: AtomicBool,
    next: AtomicU64,
    /// Something waits to be asked.
    asks: Notify,
}

#[derive(Default)]
struct State {
    open: usize,
    tree: Tree,
    /// Whose command it is, of several the one that began first.
    by: Option<(String, String)>,
    unasked: VecDeque<Held>,
}

impl Accepted {
    /// Looks at what the last daemon left: a window that was open is closed,
    /// and what waits is asked again.
    /// Nothing of that keeps the daemon from starting.
    pub(crate) fn open(home: &Path) -> Self {
        let inner = Inner {
            home: home.to_owned(),
            state: Arc::default(),
            watched: AtomicBool::new(false),
            next: AtomicU64::new(0),
            asks: Notify::new(),
        };
        let mut state = State::default();
        if let Err(error) = inner.close_window(&mut state) {
            tracing::error!(%error, "what commands did to the configuration could not be undone");
        }
        state.unasked = held::waiting(&inner.held()).into();
        if !state.unasked.is_empty() {
            inner.asks.notify_one();
        }
        inner.sweep(&state);
        Self(Arc::new(Inner {
            state: Arc::new(Mutex::new(state)),
            ..inner
        }))
    }

    /// Takes out of its place what a command changed so far. For before
    /// anything that decides over agents is read.
    pub(crate) async fn settle(&self) {
        if !self.0.watched.load(Ordering::Acquire) {
            return;
        }
        let done = self.locked(|inner, state| inner.check(state)).await;
        if let Err(error) = done {
            tracing::error!(%error, "the configuration could not be compared with what is accepted");
        }
    }

    /// Does what an owner or the daemon itself wants of the files at `path`
    /// below the home, which counts at once.
    pub(crate) async fn change<T>(&self, path: &'static str, work: impl Future<Output = T>) -> T {
        let state = Arc::clone(&self.0.state).lock_owned().await;
        if state.open == 0 {
            let done = work.await;
            drop(state);
            return done;
        }
        let Some(state) = self.step(state, |inner, state| inner.check(state)).await else {
            return work.await;
        };
        let done = work.await;
        let own = move |at: &Path| at.starts_with(path);
        self.step(state, move |inner, state| inner.absorb(state, &own))
            .await;
        done
    }

    /// A step of something longer, where it may wait for the disk.
    async fn step(
        &self,
        mut state: OwnedMutexGuard<State>,
        work: impl FnOnce(&Inner, &mut State) -> io::Result<()> + Send + 'static,
    ) -> Option<OwnedMutexGuard<State>> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            if let Err(error) = work(&inner, &mut state) {
                tracing::error!(%error, "the accepted configuration could not be recorded");
            }
            state
        });
        done.await.ok()
    }

    /// The next change that waits for an owner.
    pub(crate) async fn next(&self) -> Question {
        loop {
            let held = self.0.state.lock().await.unasked.pop_front();
            if let Some(held) = held {
                let inner = Arc::clone(&self.0);
                let asked = tokio::task::spawn_blocking(move || {
                    let folder = inner.held();
                    Question {
                        detail: shown::diff(&held, &|sha| inner.kept(sha), &|change| {
                            held.content(&folder, change)
                        }),
                        id: held.id,
                        agent: held.agent,
                        sender: held.sender,
                    }
                });
                if let Ok(question) = asked.await {
                    return question;
                }
            } else {
                self.0.asks.notified().await;
            }
        }
    }

    /// Lets a change count.
    pub(crate) async fn accept(&self, id: &str) -> Result<(), String> {
        let id = id.to_owned();
        let done = self.locked(move |inner, state| inner.accept(state, &id));
        done.await.map_err(|error| error.to_string())
    }

    /// Keeps a change aside for good.
    pub(crate) async fn refuse(&self, id: &str) -> Result<(), String> {
        let id = id.to_owned();
        let done = self.locked(move |inner, _| inner.put_aside(&id));
        done.await.map_err(|error| error.to_string())
    }

    async fn locked<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let inner = Arc::clone(&self.0);
        let mut state = Arc::clone(&inner.state).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || work(&inner, &mut state)).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Inner {
    fn place(&self, name: &str) -> PathBuf {
        self.home.join("state/accepted").join(name)
    }

    fn marker(&self) -> PathBuf {
        self.place("open")
    }

    fn kept(&self, sha256: &str) -> PathBuf {
        self.place("objects").join(sha256)
    }

    fn held(&self) -> PathBuf {
        self.home.join("state/held")
    }

    fn refused(&self) -> PathBuf {
        self.home.join("state/refused")
    }

    fn scan(&self, before: &Tree, keep: bool) -> io::Result<Tree> {
        let keep = |sha256: &str, bytes: &[u8]| {
            let file = self.kept(sha256);
            if !keep || file.exists() {
                return Ok(());
            }
            // Not synced: what a power cut takes, a restart records anew.
            let unfinished = file.with_extension("part");
            fs::create_dir_all(self.place("objects"))?;
            // Private: the configuration may hold keys (OPS-5).
            let mut private = fs::OpenOptions::new();
            let private = private.write(true).create(true).truncate(true).mode(0o600);
            private.open(&unfinished)?.write_all(bytes)?;
            fs::rename(&unfinished, &file)
        };
        tree::scan(&self.home, &ROOTS, before, &keep)
    }

    /// Ends a window that the last daemon left open.
    fn close_window(&self, state: &mut State) -> io::Result<()> {
        let marker =
            crabtalk_files::if_there(crabtalk_files::read(&self.marker(), MAX_MARKER_BYTES));
        let Some(by) = marker.map_err(io::Error::from)? else {
            return Ok(());
        };
        state.by = serde_json::from_slice(&by).unwrap_or_default();
        let known = crabtalk_files::read(&self.place("tree.json"), u64::MAX);
        let known = known.map_err(io::Error::from)?;
        state.tree = serde_json::from_slice(&known)?;
        self.check(state)?;
        fs::remove_file(self.marker())
    }

    /// Records everything as accepted, before a command begins.
    fn record(&self, state: &mut State) -> io::Result<()> {
        let tree = self.scan(&state.tree, true)?;
        if tree != state.tree || !self.place("tree.json").exists() {
            let text = serde_json::to_vec(&tree).map_err(io::Error::other)?;
            crabtalk_files::write(&self.place("tree.json"), &text, Existing::Replace)?;
        }
        state.tree = tree;
        let by = serde_json::to_vec(&state.by).map_err(io::Error::other)?;
        fs::write(self.marker(), by)
    }

    /// Takes what differs out of its place.
    fn check(&self, state: &mut State) -> io::Result<()> {
        let now = self.scan(&state.tree, false)?;
        let paths = tree::differences(&state.tree, &now);
        if paths.is_empty() {
            // Stamps that prove something by now.
            state.tree = now;
            return Ok(());
        }
        let change = |path: PathBuf| Change {
            before: state.tree.0.get(&path).cloned(),
            after: now.0.get(&path).cloned(),
            path,
        };
        let (agent, sender) = state.by.clone().unwrap_or_default();
        let clock = SystemClock.now();
        let held = Held {
            id: format!(
                "{:x}-{}",
                clock.as_millisecond(),
                self.next.fetch_add(1, Ordering::Relaxed)
            ),
            agent,
            sender,
            at: stamp(clock),
            changes: paths.into_iter().map(change).collect(),
        };
        held.take(&self.home, &self.held())?;
        held::restore(&self.home, &held.changes, &|sha256| self.kept(sha256))?;
        tracing::warn!(
            target: "security",
            agent = %held.agent,
            sender = %held.sender,
            id = %held.id,
            files = held.changes.len(),
            "a command changed the configuration; it does not count until an owner allows it"
        );
        // Again, since what was put back has new stamps.
        state.tree = self.scan(&state.tree, false)?;
        if held::waiting(&self.held()).len() > MAX_HELD {
            tracing::error!(id = %held.id, "too many changes wait: this one is refused");
            return self.put_aside(&held.id);
        }
        state.unasked.push_back(held);
        self.asks.notify_one();
        Ok(())
    }

    /// Records what lies at some paths as accepted.
    fn absorb(&self, state: &mut State, which: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        let now = self.scan(&state.tree, true)?;
        state.tree.0.retain(|path, _| !which(path));
        let taken = now.0.into_iter().filter(|(path, _)| which(path));
        state.tree.0.extend(taken);
        let text = serde_json::to_vec(&state.tree).map_err(io::Error::other)?;
        crabtalk_files::write(&self.place("tree.json"), &text, Existing::Replace)
    }

    fn accept(&self, state: &mut State, id: &str) -> io::Result<()> {
        if state.open > 0 {
            self.check(state)?;
        }
        let folder = self.held();
        let waiting = held::waiting(&folder);
        let held = waiting.iter().find(|held| held.id == id);
        let held = held.ok_or_else(|| io::Error::other("it is gone"))?;
        let now = self.scan(&Tree::default(), false)?;
        let moved = held
            .changes
            .iter()
            .find(|change| now.0.get(&change.path) != change.before.as_ref());
        if let Some(moved) = moved {
            self.put_aside(id)?;
            return Err(io::Error::other(format!(
                "{} was changed since; what was held lies in {}",
                moved.path.display(),
                self.refused().join(id).display()
            )));
        }
        held.put(&self.home, &folder)?;
        if state.open > 0 {
            let paths: Vec<&Path> = held.changes.iter().map(|c| c.path.as_path()).collect();
            self.absorb(state, &|at| paths.contains(&at))?;
        }
        fs::remove_dir_all(folder.join(id))
    }

    fn put_aside(&self, id: &str) -> io::Result<()> {
        fs::create_dir_all(self.refused())?;
        let mut old: Vec<_> = fs::read_dir(self.refused())?.flatten().collect();
        old.sort_by_key(fs::DirEntry::file_name);
        for oldest in old.iter().take((old.len() + 1).saturating_sub(MAX_REFUSED)) {
            fs::remove_dir_all(oldest.path())?;
        }
        fs::rename(self.held().join(id), self.refused().join(id))
    }

    /// Removes contents that nothing refers to any more.
    fn sweep(&self, state: &State) {
        let known = |name: &str| {
            let changes = state.unasked.iter().flat_map(|held| &held.changes);
            let before = changes.filter_map(|change| change.before.as_ref());
            let mut items = state.tree.0.values().chain(before);
            items
                .any(|item| matches!(&item.kind, tree::Kind::File { sha256, .. } if sha256 == name))
        };
        for object in fs::read_dir(self.place("objects"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if !object.file_name().to_str().is_some_and(known) {
                // What stays costs room alone.
                let _ = fs::remove_file(object.path());
            }
        }
    }
}

impl CommandWatch for Accepted {
    fn begin<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), String>> {
        let by = (key.agent.to_string(), key.sender.to_string());
        Box::pin(async move {
            let done = self.locked(move |inner, state| {
                if state.open == 0 {
                    state.by = Some(by);
                    inner.record(state)?;
                }
                state.open += 1;
                inner.watched.store(true, Ordering::Release);
                Ok(())
            });
            done.await.map_err(|error| {
                format!(
                    "commands wait until the configuration can be recorded in {}: {error}",
                    self.0.place("").display()
                )
            })
        })
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let done = self.locked(|inner, state| {
                let checked = inner.check(state);
                state.open = state.open.saturating_sub(1);
                if state.open == 0 && checked.is_ok() {
                    inner.watched.store(false, Ordering::Release);
                    fs::remove_file(inner.marker())?;
                }
                checked
            });
            if let Err(error) = done.await {
                tracing::error!(%error, "the configuration could not be compared with what is accepted");
            }
        })
    }
}

#[cfg(test)]
mod tests;
