//! Archived turns, found through an index on disk.
//!
//! Invariants: a search opens a few files and reads the postings of its words,
//! however much is archived, and nothing of an archive stays in memory
//! (STORE-3). The index is derived: texts stay in the log, what it points at is
//! compared with them before anybody sees it, and what is missing or does not
//! fit is made again. One task at a time makes it, a bounded step at a time.
//! Only what people and agents said is indexed: no tool results or arguments,
//! nothing injected or recalled, and no summary, whose turns are there already.

mod build;
mod segment;
mod span;
mod turn;

pub(crate) use segment::{Searched, Segment, text_hash};
pub(crate) use turn::{Turn, without_recalled};

use crate::index::fnv;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::Storage;
use span::{Named, in_order};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Between two looks whether the daemon is at rest.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How long no run may have begun before it is at rest: steps take time from
/// everybody where there are few processors, and none is to fall between two
/// turns that follow each other.
const CALM: Duration = Duration::from_millis(500);

/// Looks after which a step comes in any case: a daemon that is never at rest
/// must not forget.
const MAX_LOOKS: u32 = 80;

/// What the end of the daemon waits for at most.
const FINISH_WITHIN: Duration = Duration::from_millis(300);

/// Conversations that wait to be indexed. One that finds no room comes again
/// with its next turn.
const MAX_WAITING: usize = 1_024;

/// Conversations that are known to be indexed; beyond, they are looked at again.
const MAX_CHECKED: usize = 4_096;

/// Conversations and files that stay open.
const MAX_OPEN: (usize, usize) = (64, 128);

/// The index of all archives. Cheap to clone.
#[derive(Clone)]
pub struct ArchiveIndex(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    state: Mutex<State>,
    wake: Notify,
    /// Held over a step.
    building: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// What was just archived.
    urgent: VecDeque<ConversationKey>,
    /// What may not be indexed.
    waiting: VecDeque<ConversationKey>,
    checked: HashSet<ConversationKey>,
    open: HashMap<ConversationKey, Arc<[Segment]>>,
    /// Whose index does not fit; what it points at is dropped meanwhile.
    wrong: HashSet<ConversationKey>,
}

impl ArchiveIndex {
    /// An index in a folder of its own, which is made when it is needed.
    pub fn new(folder: PathBuf, storage: Arc<dyn Storage>) -> Self {
        Self(Arc::new(Inner {
            folder,
            storage,
            state: Mutex::default(),
            wake: Notify::new(),
            building: tokio::sync::Mutex::default(),
        }))
    }

    /// Sees to it that what was just archived is indexed at once.
    pub fn note(&self, key: &ConversationKey) {
        let state = &mut *self.0.state();
        if !state.urgent.contains(key) && state.urgent.len() < MAX_WAITING {
            state.urgent.push_back(key.clone());
            self.0.wake.notify_one();
        }
    }

    /// Has a conversation looked at that is met for the first time.
    pub(crate) fn meet(&self, key: &ConversationKey) {
        let state = &mut *self.0.state();
        let known = state.checked.contains(key) || state.waiting.contains(key);
        if !known && state.waiting.len() < MAX_WAITING {
            state.waiting.push_back(key.clone());
            self.0.wake.notify_one();
        }
    }

    /// Has a conversation looked at again.
    fn doubt(&self, key: &ConversationKey) {
        self.0.state().checked.remove(key);
        self.meet(key);
    }

    /// Drops what is indexed of a conversation.
    pub async fn forget(&self, key: &ConversationKey) {
        let _building = self.0.building.lock().await;
        let key = key.clone();
        self.blocking(move |inner| inner.clear(&key)).await;
    }

    /// Indexes, once there is something: what was just archived at once, and
    /// everything else while the daemon is at rest. Returns when nothing waits,
    /// and says whether there was something to do. `runs` says how many have
    /// begun so far, or `None` while one goes on.
    pub async fn fill(&self, runs: impl Fn() -> Option<u64>) -> bool {
        while !self.0.has_work() {
            self.0.wake.notified().await;
        }
        let (mut worked, mut rest) = (false, None);
        while let Some((key, urgent)) = self.0.next() {
            if urgent {
                if self.steps_left(&key, false).await {
                    worked = true;
                    self.doubt(&key);
                }
                self.0.state().urgent.pop_front();
            } else if self.calm(&runs, &mut rest).await {
                if self.steps_left(&key, true).await {
                    worked = true;
                } else {
                    self.0.state().waiting.pop_front();
                }
            }
        }
        worked
    }

    /// Indexes what waits, as far as it can be done in a moment: the daemon is
    /// about to end.
    pub async fn finish(&self) {
        let until = Instant::now() + FINISH_WITHIN;
        while let Some((key, urgent)) = self.0.next() {
            while Instant::now() < until && self.steps_left(&key, false).await {}
            let state = &mut *self.0.state();
            let queue = if urgent {
                &mut state.urgent
            } else {
                &mut state.waiting
            };
            queue.pop_front();
        }
    }

    /// Takes a step, and says whether more are to follow.
    async fn steps_left(&self, key: &ConversationKey, tidy: bool) -> bool {
        self.step(key, tidy).await.unwrap_or_else(|error| {
            tracing::warn!(conversation = %key, %error, "archives stay without index for now");
            // Whoever asks for them tries again, a turn does not.
            self.0.checked(key);
            false
        })
    }

    /// Waits until the daemon is at rest, but not for ever: no run has begun for
    /// a while. `false` if something urgent came between. `rest` is since when
    /// how many runs have been.
    async fn calm(
        &self,
        runs: &impl Fn() -> Option<u64>,
        rest: &mut Option<(u64, Instant)>,
    ) -> bool {
        for _ in 0..MAX_LOOKS {
            *rest = match (runs(), *rest) {
                (Some(now), Some((before, since))) if now == before => Some((before, since)),
                (now, _) => now.map(|now| (now, Instant::now())),
            };
            if rest.is_some_and(|(_, since)| since.elapsed() >= CALM) {
                return true;
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if !self.0.state().urgent.is_empty() {
                return false;
            }
        }
        true
    }

    /// Indexes what is missing of a conversation, the newest first, for as long
    /// as there is time, and says whether everything is there then.
    pub(crate) async fn catch_up(&self, key: &ConversationKey, until: Instant) -> bool {
        loop {
            // Merges come in their time: each step opens every file.
            match self.step(key, true).await {
                Ok(true) if Instant::now() < until => {}
                Ok(true) => {
                    self.doubt(key);
                    return false;
                }
                Ok(false) => return true,
                Err(error) => {
                    tracing::warn!(conversation = %key, %error, "recall goes without some archives");
                    return false;
                }
            }
        }
    }

    /// What is indexed of a conversation. Touches the disk.
    pub(crate) fn segments(&self, key: &ConversationKey) -> Arc<[Segment]> {
        if let Some(open) = self.0.state().open.get(key) {
            return Arc::clone(open);
        }
        let folder = self.0.folder_of(key);
        let (kept, _) = in_order(names(&folder));
        let (mut segments, mut whole) = (Vec::with_capacity(kept.len()), true);
        for named in kept {
            let file = folder.join(named.file());
            match Segment::open(&file, key) {
                Ok(segment) => segments.push(segment),
                Err(error) => {
                    whole = false;
                    self.distrust(key, &file, &error);
                }
            }
        }
        let segments: Arc<[Segment]> = segments.into();
        if whole && !segments.is_empty() {
            self.0.keep_open(key, &segments);
        }
        segments
    }

    /// Puts a segment that cannot be read out of the way, to be made again.
    pub(crate) fn distrust(&self, key: &ConversationKey, file: &Path, error: &io::Error) {
        tracing::warn!(file = %file.display(), %error, "an index of archives is made again");
        // A lack of descriptors or memory says nothing of the file.
        if matches!(
            error.kind(),
            ErrorKind::InvalidData
                | ErrorKind::UnexpectedEof
                | ErrorKind::InvalidInput
                | ErrorKind::PermissionDenied
        ) {
            put_away(file);
        }
        self.0.state().open.remove(key);
        self.doubt(key);
    }

    /// Has everything made again, since the log says otherwise than the index.
    pub(crate) fn discard(&self, key: &ConversationKey) {
        tracing::warn!(conversation = %key, "the index of its archives does not fit and is made again");
        self.0.state().wrong.insert(key.clone());
        self.doubt(key);
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> T {
        let inner = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(done) => done,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that says nothing; whose it is stands in the files.
    fn folder_of(&self, key: &ConversationKey) -> PathBuf {
        let name = format!("{}\0{}", key.agent, key.sender);
        self.folder.join(format!("{:016x}", fnv(name.as_bytes())))
    }

    /// What is to be done next, and whether at once.
    fn next(&self) -> Option<(ConversationKey, bool)> {
        let state = self.state();
        let urgent = state.urgent.front().map(|key| (key, true));
        let next = urgent.or_else(|| state.waiting.front().map(|key| (key, false)));
        next.map(|(key, urgent)| (key.clone(), urgent))
    }

    fn has_work(&self) -> bool {
        self.next().is_some()
    }

    fn checked(&self, key: &ConversationKey) {
        let mut state = self.state();
        if state.checked.len() >= MAX_CHECKED {
            state.checked.clear();
        }
        state.checked.insert(key.clone());
    }

    fn keep_open(&self, key: &ConversationKey, segments: &Arc<[Segment]>) {
        let mut state = self.state();
        let files: usize = state.open.values().map(|open| open.len()).sum();
        if state.open.len() >= MAX_OPEN.0 || files + segments.len() > MAX_OPEN.1 {
            state.open.clear();
        }
        state.open.insert(key.clone(), Arc::clone(segments));
    }

    fn clear(&self, key: &ConversationKey) {
        let folder = self.folder_of(key);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "an old index stays");
            }
            _ => {}
        }
        let mut state = self.state();
        state.open.remove(key);
        state.checked.remove(key);
    }
}

/// Takes what is no segment out of a segment's place: a file is of no use to
/// anybody, and what else somebody put there is kept under another name.
fn put_away(path: &Path) {
    if std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        told(path, std::fs::remove_file(path));
    } else {
        put_aside(path);
    }
}

/// Keeps what somebody put in the way under another name.
fn put_aside(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".foreign");
    told(path, std::fs::rename(path, &aside));
}

fn told(path: &Path, gone: std::io::Result<()>) {
    if let Err(error) = gone
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(file = %path.display(), %error, "it stays in the way of an index");
    }
}

/// The segments of a folder. What a crash left is deleted.
fn names(folder: &Path) -> Vec<Named> {
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for file in files.flatten() {
        let name = file.file_name();
        names.extend(name.to_str().and_then(Named::parse));
        if crabtalk_files::is_left_over(&name) && is_old(&file) {
            let _ = std::fs::remove_file(file.path());
        }
    }
    names
}

/// Whether nobody can be writing it any more.
fn is_old(file: &std::fs::DirEntry) -> bool {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let modified = file.metadata().and_then(|it| it.modified()).ok();
    modified.is_some_and(|at| at.elapsed().is_ok_and(|age| age > HOUR))
}
