//! The file tools: a call's path is judged first, then the work waits for a permit of
//! [`FileWork`](crate::FileWork).

use super::{Failure, OsTools, arguments, of};
use crate::files::{
    Change, Closed, GlobArguments, GrepArguments, Intent, ReadArguments, Resolver, Searched, glob,
    grep, read,
};
use crabtalk_domain::tool::{Invocation, Preview, Subject, ToolOutput};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of locks that serialize edits of one file. Two files may share a lock, which
/// delays one of them briefly.
const EDIT_LOCKS: usize = 64;

pub(super) struct EditLocks([Mutex<()>; EDIT_LOCKS]);

impl Default for EditLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl EditLocks {
    pub(super) fn lock(&self, path: &Path) -> MutexGuard<'_, ()> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % EDIT_LOCKS as u64).expect("below the count");
        // The mutex guards no data, so a panic leaves no inconsistent state.
        self.0[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OsTools {
    /// The judged path of a file tool's call.
    pub(super) async fn path(
        &self,
        call: &Invocation,
        text: String,
        intent: Intent,
    ) -> Result<Subject, String> {
        let (cwd, user_home) = (call.cwd.clone(), self.user_home.clone());
        let (home, open) = (self.config.home.clone(), self.open_paths(call));
        self.files
            .run(&of(call), move |_| {
                let (readable, writable) = (open.readable(), open.writable());
                let resolver = Resolver {
                    cwd: &cwd,
                    user_home: user_home.as_deref(),
                };
                let closed = Closed {
                    home: &home,
                    readable: &readable,
                    writable: &writable,
                };
                let path = resolver.lead(&text)?;
                closed.check(&path, intent)?;
                Ok(Subject::Path {
                    path,
                    write: intent != Intent::Read,
                })
            })
            .await
            .map_err(|e: Failure| e.0)
    }

    /// Checks that the operation is possible on a path that may be accessed. An earlier check
    /// would reveal what exists there.
    pub(super) async fn sensible(
        &self,
        call: &Invocation,
        text: String,
        intent: Intent,
        judged: &Path,
    ) -> Result<(), Failure> {
        let (cwd, user_home) = (call.cwd.clone(), self.user_home.clone());
        let judged = judged.to_path_buf();
        self.files
            .run(&of(call), move |_| {
                let resolver = Resolver {
                    cwd: &cwd,
                    user_home: user_home.as_deref(),
                };
                if resolver.resolve(&text, intent)? == judged {
                    Ok(())
                } else {
                    Err(crate::files::Error::Changed(judged).into())
                }
            })
            .await
    }

    pub(super) async fn read(&self, call: &Invocation, path: &Path) -> Result<ToolOutput, Failure> {
        let (arguments, path): (ReadArguments, _) = (arguments(call)?, path.to_path_buf());
        let text = arguments.path.clone();
        self.sensible(call, text, Intent::Read, &path).await?;
        self.files
            .run(&of(call), move |cancelled| {
                Ok(read(&path, &arguments, cancelled)?)
            })
            .await
    }

    /// Searches below a judged folder, or in a judged file.
    pub(super) async fn search(
        &self,
        call: &Invocation,
        root: &Path,
    ) -> Result<ToolOutput, Failure> {
        enum Search {
            Grep(GrepArguments),
            Glob(GlobArguments),
        }
        let search = match call.name.as_str() {
            "grep" => Search::Grep(arguments(call)?),
            _ => Search::Glob(arguments(call)?),
        };
        let (root, cwd, home) = (root.to_owned(), call.cwd.clone(), self.config.home.clone());
        let work = move |cancelled: &AtomicBool| {
            let searched = Searched {
                root: &root,
                cwd: &cwd,
                home: &home,
                cancelled,
            };
            let found = match &search {
                Search::Grep(arguments) => grep(&searched, arguments)?,
                Search::Glob(arguments) => glob(&searched, arguments)?,
            };
            Ok::<_, Failure>(ToolOutput::ok(found))
        };
        self.files.run(&of(call), work).await
    }

    pub(super) async fn shown(&self, call: &Invocation, path: &Path) -> Result<Preview, Failure> {
        let (change, path) = (change(call)?, path.to_path_buf());
        let (text, intent) = change.aim();
        self.sensible(call, text, intent, &path).await?;
        self.files
            .run(&of(call), move |_| Ok(change.preview(&path)?))
            .await
    }

    pub(super) async fn change(
        &self,
        call: &Invocation,
        path: &Path,
        shown: Option<&Preview>,
    ) -> Result<ToolOutput, Failure> {
        let (change, path) = (change(call)?, path.to_path_buf());
        let (text, intent) = change.aim();
        self.sensible(call, text, intent, &path).await?;
        let (locks, shown) = (Arc::clone(&self.edits), shown.cloned());
        let (changes, of_call) = (self.changes.clone(), call.clone());
        self.files
            .run(&of(call), move |cancelled| {
                let _one_at_a_time = locks.lock(&path);
                not_if(cancelled)?;
                let pending = changes.will(&of_call, &path);
                let made = change.make(&path, shown.as_ref());
                if let Some(pending) = pending {
                    pending.done(made.is_ok());
                }
                Ok(ToolOutput::ok(made?))
            })
            .await
    }
}

/// The change of a call of `edit` or `write`.
pub(super) fn change(call: &Invocation) -> Result<Change, Failure> {
    if call.name == "edit" {
        Ok(Change::Edit(arguments(call)?))
    } else {
        Ok(Change::Write(arguments(call)?))
    }
}

/// Refuses a change that was cancelled while it waited.
fn not_if(cancelled: &AtomicBool) -> Result<(), Failure> {
    if cancelled.load(Ordering::Relaxed) {
        Err(Failure("cancelled".into()))
    } else {
        Ok(())
    }
}
