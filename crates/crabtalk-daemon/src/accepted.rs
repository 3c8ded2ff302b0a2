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
mod window;

use crabtalk_domain::{BoxFuture, ConversationKey};
use crabtalk_tools::CommandWatch;
use held::Held;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tree::Tree;

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
