//! Records the changes of a command to its work tree: the tree is examined
//! before and after the command.

use super::found::PathState;
use super::journal::{Journal, Line};
use super::tree::{Before, Changed, Tree};
use super::{Changes, Inner};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::tool::Invocation;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A tree that takes longer to examine would delay commands and is skipped for
/// [`LEFT_ALONE`].
const SLOW: Duration = Duration::from_secs(5);

/// How long a slow tree is skipped.
const LEFT_ALONE: Duration = Duration::from_secs(600);

/// Maximum number of slow trees to remember.
const MAX_SLOW: usize = 64;

/// Maximum characters of a command in a note.
const MAX_COMMAND_CHARS: usize = 80;

/// A command that runs in a work tree.
pub(super) struct Running {
    pub(super) id: u64,
    pub(super) top: PathBuf,
    pub(super) run: (ConversationKey, u64),
    /// Whether another run's command ran in the same tree.
    pub(super) overlapped: bool,
    /// Files that tools of other runs wrote while the command ran.
    pub(super) foreign: HashMap<PathBuf, PathState>,
}

/// The state of a work tree before a command.
pub(crate) struct TreeBefore {
    inner: Arc<Inner>,
    journal: Journal,
    id: u64,
    top: PathBuf,
    before: Option<Before>,
}

/// A command of a call, and its folder.
pub(crate) struct Around {
    inner: Arc<Inner>,
    run: (ConversationKey, u64),
    cwd: PathBuf,
    what: String,
}

impl Changes {
    /// Creates the record of a command that is about to run.
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

impl Around {
    /// Examines the work tree before the command.
    pub(crate) async fn before(self) -> Option<TreeBefore> {
        let journal = self.inner.journal(&self.run);
        let tree = match self.tree().await {
            Ok(tree) => tree,
            Err(text) => {
                // The command runs even without a record.
                let _ = written(&journal, vec![Line::Note { text }]).await;
                return None;
            }
        };
        let inner = self.inner;
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        let top = tree.top.clone();
        let folder = journal.folder().join(format!("before-{id}"));
        inner.begin(id, &top, &self.run);
        let began = Instant::now();
        let before = Before::look(&inner.git, tree, folder).await;
        if began.elapsed() > SLOW {
            inner.note_slow(&top);
        }
        let mut seen = TreeBefore {
            inner,
            journal,
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
                    top: seen.top.clone(),
                }
            }
            Err(why) => Line::Note {
                text: format!(
                    "changes of `{}` in {} are not recorded: {why}",
                    self.what,
                    seen.top.display()
                ),
            },
        };
        written(&seen.journal, vec![line]).await.ok()?;
        Some(seen)
    }

    /// Finds the command's work tree; the error is the reason why its changes are not
    /// recorded.
    async fn tree(&self) -> Result<Tree, String> {
        let (inner, cwd) = (Arc::clone(&self.inner), self.cwd.clone());
        let tree = tokio::task::spawn_blocking(move || {
            inner
                .has_room()
                .map(|()| Tree::of(&cwd, inner.user_home.as_deref()))
        });
        let Some(tree) = tree.await.map_err(|e| e.to_string())?? else {
            return Err(format!(
                "changes of commands in {} are not recorded, because it is not a git repository",
                self.cwd.display()
            ));
        };
        if self.inner.is_slow(&tree.top) {
            return Err(format!(
                "changes of commands in {} are not recorded: examining it takes too long",
                tree.top.display()
            ));
        }
        Ok(tree)
    }
}

/// Appends to a journal on a blocking thread.
async fn written(journal: &Journal, lines: Vec<Line>) -> Result<(), String> {
    let journal = journal.clone();
    let written = tokio::task::spawn_blocking(move || journal.write(&lines));
    written.await.map_err(|e| e.to_string())?
}

impl TreeBefore {
    /// Examines the work tree after the command, and records its changes.
    pub(crate) async fn after(mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        let changed = before
            .changed(&self.inner.git, self.journal.objects())
            .await;
        let running = self.inner.end(self.id);
        let mut lines: Vec<Line> = match changed {
            Ok(changed) => changed
                .into_iter()
                .filter_map(|file| self.line(file, running.as_ref()))
                .collect(),
            Err(why) => vec![Line::Note {
                text: format!(
                    "changes of a command in {} are not recorded: {why}",
                    self.top.display()
                ),
            }],
        };
        lines.push(Line::Ended { id: self.id });
        if let Some(running) = running {
            let (inner, changed) = (Arc::clone(&self.inner), lines.clone());
            let counted = tokio::task::spawn_blocking(move || {
                for line in &changed {
                    if let Line::Changed { before, after, .. } = line {
                        inner.count(before, &running.run);
                        inner.count(after, &running.run);
                    }
                }
            });
            // A panic while counting does not affect the command.
            let _ = counted.await;
        }
        if let Err(why) = written(&self.journal, lines).await {
            tracing::warn!(why, "changes of a command cannot be undone");
        }
    }

    /// The entry for a changed file; `None` if a tool of another run changed it
    /// and recorded that.
    fn line(&self, file: Changed, running: Option<&Running>) -> Option<Line> {
        let wrote = running.and_then(|running| running.foreign.get(&file.path));
        if wrote.is_some_and(|wrote| wrote.is(&file.after)) {
            return None;
        }
        let doubt = match wrote {
            Some(_) => "another run changed it at the same time",
            None if running.is_some_and(|running| running.overlapped) => {
                "another run's command ran in the same folder at the same time"
            }
            None => "",
        };
        Some(Line::Changed {
            id: self.id,
            path: file.path,
            before: file.before,
            after: file.after,
            top: self.top.clone(),
            doubt: doubt.to_owned(),
        })
    }
}

impl Drop for TreeBefore {
    fn drop(&mut self) {
        self.inner.end(self.id);
    }
}

impl Inner {
    fn slow(&self) -> MutexGuard<'_, Vec<(PathBuf, Instant)>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether examining a tree took too long recently.
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
}
