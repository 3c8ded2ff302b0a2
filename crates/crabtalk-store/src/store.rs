//! Stores conversations as files.
//!
//! Invariants: creating the store accesses no disk; file access uses the blocking pool, in
//! a few threads; a started operation completes even if its caller is dropped.

mod check;
mod read;
mod search;
mod trash;

use crate::Indexes;
use crate::archive::infos;
use crate::error::{failed, not_done};
use crate::fs::{Access, FileLayer};
use crate::index::Index;
use crate::load::{Loaded, load};
use crate::log::JsonlLog;
use crate::state::{Shared, State, SyncState};
use crate::sync::Syncer;
use crabtalk_domain::storage::{
    ArchiveInfo, BrokenLogs, Check, Error, Hits, LogEntry, LogId, LogPart, NewConversation, Opened,
    Page, RunTrace, Search, Storage, Summary, SyncPolicy,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Maximum concurrent opens, creations and removals: they are short, and a thread for each
/// of a thousand conversations would cost too much memory.
const MAX_OPENS: usize = 2;

/// Maximum concurrent lists and pages, counted apart from opens because some are long.
const MAX_READS: usize = 2;

/// Number of logs whose line 1 is checked in one task.
const CHECKED_TOGETHER: usize = 256;

/// The store over a sessions folder.
pub struct FileStore(Arc<Inner>);

struct Inner {
    fs: Arc<dyn FileLayer>,
    dir: PathBuf,
    trash_dir: PathBuf,
    policy: SyncPolicy,
    index: Arc<Index>,
    syncer: Arc<Syncer>,
    opens: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    belongings: Vec<(&'static str, Belongings)>,
}

/// The folder of a conversation for one kind of its tools' files.
type Belongings = Box<dyn Fn(&ConversationKey) -> PathBuf + Send + Sync>;

impl FileStore {
    /// Creates a store of conversations in `sessions_dir`, which moves removed ones to
    /// `trash_dir`. Both folders are created when needed; nothing is read yet.
    pub fn open(
        sessions_dir: impl Into<PathBuf>,
        trash_dir: impl Into<PathBuf>,
        policy: SyncPolicy,
        fs: Arc<dyn FileLayer>,
        indexes: &Indexes,
    ) -> Self {
        let dir = sessions_dir.into();
        Self(Arc::new(Inner {
            index: Arc::new(Index::new(Arc::clone(&fs), dir.clone(), indexes.logs())),
            syncer: Arc::default(),
            fs,
            dir,
            trash_dir: trash_dir.into(),
            policy,
            opens: Arc::new(Semaphore::new(MAX_OPENS)),
            reads: Arc::new(Semaphore::new(MAX_READS)),
            belongings: Vec::new(),
        }))
    }

    /// Adds a folder with a conversation's files, which moves to the trash with the
    /// conversation, under this name.
    #[must_use]
    pub fn with_belongings(
        mut self,
        name: &'static str,
        folder: impl Fn(&ConversationKey) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("nobody shares a store in the making");
        inner.belongings.push((name, Box::new(folder)));
        self
    }

    /// Runs `work` in the blocking pool.
    fn blocking<T: Send + 'static>(
        &self,
        permits: &Arc<Semaphore>,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (inner, permits) = (Arc::clone(&self.0), Arc::clone(permits));
        Box::pin(async move {
            let permit = permits
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            let work = spawn_blocking(move || {
                let _permit = permit;
                work(&inner)
            });
            work.await.unwrap_or_else(|e| Err(not_done(e)))
        })
    }

    /// Lists the conversations of an agent, of a sender, of both or of all.
    fn listed(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
        list: impl FnOnce(&Inner, Option<&str>, Option<&str>) -> Result<Vec<Summary>, Error>
        + Send
        + 'static,
    ) -> BoxFuture<'static, Result<Vec<Summary>, Error>> {
        let (agent, sender) = (agent.map(str::to_owned), sender.map(str::to_owned));
        self.blocking(&self.0.reads, move |inner| {
            list(inner, agent.as_deref(), sender.as_deref())
        })
    }
}

impl Storage for FileStore {
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>> {
        let key = key.clone();
        self.blocking(&self.0.opens, move |inner| {
            inner.open(&key, create.as_ref())
        })
    }

    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        self.listed(agent, sender, Inner::list)
    }

    fn latest<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        self.listed(agent, sender, move |inner, agent, sender| {
            inner.latest(agent, sender, limit)
        })
    }

    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        let source = source.clone();
        self.blocking(&self.0.reads, move |inner| {
            inner.page(&source, before, limit)
        })
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>> {
        let (key, indexes) = (key.clone(), indexes.to_owned());
        self.blocking(&self.0.reads, move |inner| inner.entries(&key, &indexes))
    }

    fn search(&self, search: Search) -> BoxFuture<'_, Result<Hits, Error>> {
        self.blocking(&self.0.reads, move |inner| inner.search(&search))
    }

    fn maintain(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.blocking(&self.0.reads, |inner| inner.index.maintain())
    }

    fn trace<'a>(
        &'a self,
        key: &'a ConversationKey,
        run: u64,
    ) -> BoxFuture<'a, Result<Option<RunTrace>, Error>> {
        let key = key.clone();
        self.blocking(&self.0.reads, move |inner| inner.trace(&key, run))
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, Error>> {
        let key = key.clone();
        self.blocking(&self.0.reads, move |inner| {
            let log = inner.log_of(&key)?;
            Ok(infos(&log.markers()?))
        })
    }

    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        self.blocking(&self.0.opens, move |inner| inner.remove(&key))
    }

    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>> {
        let id = id.clone();
        self.blocking(&self.0.reads, move |inner| inner.summary_of(&id))
    }

    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>> {
        let id = id.clone();
        self.blocking(&self.0.opens, move |inner| inner.remove_log(&id))
    }

    fn trash<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        self.listed(agent, sender, Inner::trash)
    }

    fn restore<'a>(
        &'a self,
        key: &'a ConversationKey,
        log: Option<&'a LogId>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let (key, log) = (key.clone(), log.cloned());
        self.blocking(&self.0.opens, move |inner| {
            inner.restore(&key, log.as_ref())
        })
    }

    fn check(&self, check: Check) -> BoxFuture<'_, Result<BrokenLogs, Error>> {
        Box::pin(async move {
            let reads = &self.0.reads;
            let deadline = Instant::now() + check.time;
            let names = self.blocking(reads, move |inner| inner.file_names(check));
            let mut found = BrokenLogs::default();
            // A few at a time, so that other operations can access the disk.
            let together = if check.lines { 1 } else { CHECKED_TOGETHER };
            for names in names.await?.chunks(together) {
                if found.logs.len() > check.most || Instant::now() >= deadline {
                    found.incomplete = true;
                    break;
                }
                let names = names.to_vec();
                let broken = self.blocking(reads, move |inner| {
                    let broken = |name: &String| inner.broken(check, name);
                    Ok(names.iter().filter_map(broken).collect::<Vec<_>>())
                });
                found.logs.extend(broken.await?);
            }
            found.incomplete |= found.logs.len() > check.most;
            found.logs.truncate(check.most);
            Ok(found)
        })
    }
}

impl Inner {
    fn open(
        &self,
        key: &ConversationKey,
        create: Option<&NewConversation>,
    ) -> Result<Option<Opened>, Error> {
        let off = self.policy == SyncPolicy::Never;
        let (path, created) = {
            let mut names = self.index.lock();
            let files = names.find(key)?;
            match (files.current(&self.dir)?, create) {
                (Some(found), _) => (self.dir.join(&found.name), None),
                (None, Some(new)) => {
                    let created = names.create(key, new, &files)?;
                    (created.path, Some((created.file, created.lines)))
                }
                (None, None) => return Ok(None),
            }
        };
        let (file, lines) = match created {
            Some((file, lines)) => (file, Some(lines)),
            None => {
                let opened = self.fs.open(&path, Access::Append);
                (opened.map_err(|e| failed("open", &path, e))?, None)
            }
        };
        // Fails only if another program has just replaced the file.
        let Some(loaded) = load(&*file, &path)?.filter(|loaded| loaded.head.is_of(key)) else {
            return Err(Error::NotFound(format!("conversation {key}")));
        };
        let sync = match lines {
            Some(lines) => SyncState::created(lines, off),
            None => SyncState::opened(loaded.end, off),
        };
        let Loaded {
            end,
            tail,
            unterminated,
            ..
        } = loaded;
        let mut state = State {
            path,
            file,
            end,
            tail,
            unterminated,
            sync,
        };
        self.index.touch(&state.path);
        if let Err(error) = state.mend(&*self.fs) {
            // The log is readable; the next append tries again and reports the failure.
            tracing::warn!(%error, "cannot remove a torn line now; the next append tries again");
        }
        let shared = Shared::new(Arc::clone(&self.fs), state);
        let log = self.log(key, shared, &loaded);
        Ok(Some(opened(log, loaded)))
    }

    fn log(&self, key: &ConversationKey, shared: Arc<Shared>, loaded: &Loaded) -> JsonlLog {
        let (index, syncer) = (Arc::clone(&self.index), Arc::clone(&self.syncer));
        JsonlLog::new(key.clone(), shared, index, syncer, self.policy, loaded)
    }
}

fn opened(log: JsonlLog, loaded: Loaded) -> Opened {
    Opened {
        log: Box::new(log),
        meta: loaded.meta,
        history: loaded.history,
        has_summary: loaded.has_summary,
        kept: loaded.kept,
        archived_messages: loaded.archived.unwrap_or(0),
        last_run: loaded.last_run,
        open_run: loaded.open_run,
        requests: loaded.requests,
        last_end: loaded.last_end,
        waiting: loaded.waiting,
        steers: loaded.steers,
    }
}
