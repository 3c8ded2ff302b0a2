//! Archived turns, found through an index on disk.
//!
//! Invariants: a search opens a few files and reads the postings of its words,
//! however much is archived, and nothing of an archive stays in memory
//! (STORE-3). The index is derived: it holds no words, what it points at is
//! compared with the log before anybody sees it, and what is missing or does not
//! fit is made again. One task at a time makes it, a bounded step at a time.
//! Only what people and agents said is indexed: no tool results or arguments,
//! nothing injected or recalled, and no summary, whose turns are there already.

mod segment;
mod span;
mod turn;

pub(crate) use segment::{Searched, Segment, text_hash};
pub(crate) use turn::{Turn, without_recalled};

use crate::disk;
use crate::index::fnv;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{self, ArchiveInfo, Source, Storage};
use segment::{Draft, Part, Session, merge};
use span::{Named, Span, in_order, newest_gap};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes of text that one step indexes, and a segment holds before any merge:
/// some hundredths of a second of work, and few megabytes of memory.
const STEP_TEXT_BYTES: usize = 256 * 1024;

/// Bytes of messages that one step reads: tool results are passed over.
const STEP_READ_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of messages that a page should have: its size follows from the last one.
const PAGE_BYTES: usize = 64 * 1024;

/// Entries of a page, the first one and at most.
const PAGE: (usize, usize) = (16, 256);

/// Segments of one size that are made one.
const MERGED: usize = 8;

/// Documents of the largest segment: a search holds some bytes for each.
const MAX_DOCS: u32 = 1 << 18;

/// Between two looks whether the daemon is at rest.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks that find it at rest before a step, so that none falls between two
/// turns that follow each other.
const CALM_LOOKS: u32 = 2;

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

/// What is to be done next for a conversation.
enum Step {
    Nothing,
    Merge(Vec<Named>),
    Index(Span),
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
    /// everything else while the daemon is at rest. Returns when nothing waits.
    pub async fn fill(&self, busy: impl Fn() -> bool) {
        while !self.0.has_work() {
            self.0.wake.notified().await;
        }
        while let Some((key, urgent)) = self.0.next() {
            if urgent {
                if self.steps_left(&key, false).await {
                    self.doubt(&key);
                }
                self.0.state().urgent.pop_front();
            } else if self.calm(&busy).await && !self.steps_left(&key, true).await {
                self.0.state().waiting.pop_front();
            }
        }
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
            false
        })
    }

    /// Waits until the daemon is at rest, but not for ever. `false` if something
    /// urgent came between.
    async fn calm(&self, busy: &impl Fn() -> bool) -> bool {
        let mut calm = 0;
        for _ in 0..MAX_LOOKS {
            tokio::time::sleep(LOOK_EVERY).await;
            if !self.0.state().urgent.is_empty() {
                return false;
            }
            calm = if busy() { 0 } else { calm + 1 };
            if calm >= CALM_LOOKS {
                break;
            }
        }
        true
    }

    /// Indexes what is missing of a conversation, the newest first, for as long
    /// as there is time.
    pub(crate) async fn catch_up(&self, key: &ConversationKey, until: Instant) {
        loop {
            match self.step(key, false).await {
                Ok(true) if Instant::now() < until => {}
                Ok(true) => return self.doubt(key),
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(conversation = %key, %error, "recall goes without its archives");
                    return;
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
        if matches!(
            error.kind(),
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof
        ) {
            let _ = std::fs::remove_file(file);
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

    /// Brings the index of a conversation one step further, and says whether
    /// more is to be done. `tidy`: merges too, which only saves time later.
    async fn step(&self, key: &ConversationKey, tidy: bool) -> Result<bool, crate::Error> {
        let _building = self.0.building.lock().await;
        let infos: Arc<[ArchiveInfo]> = match self.0.storage.archives(key).await {
            Err(storage::Error::NotFound(_)) => Arc::default(),
            other => other?.into(),
        };
        let (index, of, archives) = (self.clone(), key.clone(), Arc::clone(&infos));
        let next = self.blocking(move |inner| inner.next_step(&index, &of, &archives, tidy));
        match next.await {
            Step::Nothing => {
                self.0.checked(key);
                Ok(false)
            }
            Step::Merge(parts) => {
                let of = key.clone();
                let merged = self.blocking(move |inner| inner.merge(&of, &parts)).await;
                merged
                    .map(|()| true)
                    .map_err(|error| self.failed(key, error))
            }
            Step::Index(span) => {
                let (archive, _) = span.last();
                let info = infos.iter().find(|info| info.index == archive);
                let Some(info) = info else { return Ok(false) };
                self.index(key, info, span).await?;
                Ok(true)
            }
        }
    }

    /// Indexes the newest part of a gap.
    async fn index(
        &self,
        key: &ConversationKey,
        info: &ArchiveInfo,
        gap: Span,
    ) -> Result<(), crate::Error> {
        let (archive, mut before) = gap.last();
        let floor = if gap.from.0 == archive { gap.from.1 } else { 0 };
        let source = Source::Archive(key.clone(), archive);
        let (mut newest_first, mut text, mut read, mut limit) = (Vec::new(), 0, 0, PAGE.0);
        let from = loop {
            let page = self.0.storage.page(&source, before, limit).await?;
            let first = page.entries.first().map(|entry| entry.index);
            let mut bytes = 0;
            for entry in page.entries.iter().rev() {
                bytes += entry.message.content.len();
                if entry.compact || entry.index < floor {
                    continue;
                }
                if let Some(turn) = Turn::of(key, &info.archived_at, &entry.message) {
                    text += turn.text.len();
                    newest_first.push((entry.index, turn));
                }
            }
            read += bytes;
            match first.filter(|first| page.more && *first > floor) {
                None => break floor,
                Some(first) if text >= STEP_TEXT_BYTES || read >= STEP_READ_BYTES => break first,
                first => before = first,
            }
            let mean = bytes / page.entries.len().max(1) + 1;
            limit = (PAGE_BYTES / mean).clamp(1, PAGE.1);
        };
        let span = Span {
            from: (archive, from),
            ..gap
        };
        let session = Session {
            first_doc: 0,
            archive,
            title: info.title.clone(),
            archived_at: info.archived_at.clone(),
            messages: info.message_count,
        };
        let of = key.clone();
        let written = self.blocking(move |inner| {
            let named = Named { span, level: 0 };
            let part = Part {
                key: &of,
                named,
                session,
            };
            let folder = inner.folder_of(&of);
            let written = Draft::of(newest_first.into_iter().rev()).write(&folder, &part);
            inner.state().open.remove(&of);
            written
        });
        written.await.map_err(|error| self.failed(key, error))
    }

    fn failed(&self, key: &ConversationKey, source: io::Error) -> crate::Error {
        crate::Error::Io {
            action: "write",
            file: self.0.folder_of(key),
            source,
        }
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

    /// Compares what is there with the archives.
    fn next_step(
        &self,
        index: &ArchiveIndex,
        key: &ConversationKey,
        infos: &[ArchiveInfo],
        tidy: bool,
    ) -> Step {
        let folder = self.folder_of(key);
        let segments = index.segments(key);
        let fits = |session: &Session| {
            infos.iter().any(|info| {
                info.index == session.archive
                    && info.title == session.title
                    && info.archived_at == session.archived_at
                    && info.message_count == session.messages
            })
        };
        let fit = segments.iter().flat_map(Segment::sessions).all(fits);
        let wrong = self.state().wrong.remove(key);
        if !fit || wrong || infos.is_empty() {
            self.clear(key);
        }
        let (kept, superfluous) = in_order(names(&folder));
        for named in superfluous {
            let _ = std::fs::remove_file(folder.join(named.file()));
        }
        if tidy && let Some(parts) = mergeable(&kept, &segments) {
            return Step::Merge(parts);
        }
        match newest_gap(&kept, infos.len() as u32) {
            Some(gap) => Step::Index(gap),
            None => Step::Nothing,
        }
    }

    fn merge(&self, key: &ConversationKey, parts: &[Named]) -> io::Result<()> {
        let folder = self.folder_of(key);
        let [first, .., last] = parts else {
            return Ok(());
        };
        let named = Named {
            span: Span {
                from: first.span.from,
                to: last.span.to,
            },
            level: first.level + 1,
        };
        let open = |part: &Named| Segment::open(&folder.join(part.file()), key);
        let segments: Vec<Segment> = parts.iter().map(open).collect::<io::Result<_>>()?;
        let merged = merge(&segments, &folder, &folder.join(named.file()));
        if merged.is_ok() {
            for part in parts {
                // What stays is passed over and deleted by a later step.
                let _ = std::fs::remove_file(folder.join(part.file()));
            }
        }
        self.state().open.remove(key);
        merged
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
        if disk::is_left_over(&name) && is_old(&file) {
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

/// Neighbours of one size that are enough to be made one, and not too much.
fn mergeable(kept: &[Named], segments: &[Segment]) -> Option<Vec<Named>> {
    if kept.len() != segments.len() {
        return None;
    }
    (0..kept.len().checked_sub(MERGED - 1)?).find_map(|at| {
        let run = &kept[at..at + MERGED];
        let docs: u64 = segments[at..at + MERGED]
            .iter()
            .map(|segment| u64::from(segment.docs()))
            .sum();
        let alike = run
            .windows(2)
            .all(|two| two[0].level == two[1].level && two[0].span.to == two[1].span.from);
        (alike && run[0].level < u8::MAX && docs <= u64::from(MAX_DOCS)).then(|| run.to_vec())
    })
}
