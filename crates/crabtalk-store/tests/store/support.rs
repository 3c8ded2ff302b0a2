//! A store in a temporary folder, constructors for records, and a file layer
//! with injected faults.

use crabtalk_domain::storage::SyncPolicy;
use crabtalk_domain::storage::*;
use crabtalk_domain::{ConversationKey, Message};
use crabtalk_store::FileStore;
use crabtalk_store::fs::{Access, FileLayer, LogFile, OsFiles, Stat};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) disk: Disk,
    pub(crate) store: FileStore,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with(SyncPolicy::Step)
    }

    pub(crate) fn with(policy: SyncPolicy) -> Self {
        let dir = tempfile::tempdir().expect("temp dir");
        let disk = Disk::default();
        let store = store(dir.path(), policy, &disk);
        Self { dir, disk, store }
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.sessions().join("trash")
    }

    /// Another store over the same folder, as after a restart.
    pub(crate) fn restart(&mut self) {
        self.store = store(self.dir.path(), SyncPolicy::Step, &self.disk);
    }

    /// Writes a file by hand, later than all writes of the store by the clock of
    /// the file system.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let dir = self.sessions();
        std::fs::create_dir_all(&dir).expect("dir");
        let changed = || OsFiles.changed(&dir).expect("stat");
        let (before, probe) = (changed(), dir.join("probe"));
        while changed() == before {
            std::fs::write(&probe, "").expect("write");
            std::fs::remove_file(&probe).expect("remove");
        }
        let path = dir.join(name);
        std::fs::write(&path, content).expect("write");
        path
    }

    /// Makes a log one that changed so many seconds before a certain moment.
    pub(crate) fn age(&self, name: &str, seconds: u64) {
        let file = std::fs::File::options()
            .append(true)
            .open(self.sessions().join(name))
            .expect("is there");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - seconds);
        file.set_modified(at).expect("is ours");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.sessions().join(name)).expect("read")
    }

    /// Names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.sessions())
    }

    pub(crate) async fn open(&self, agent: &str, sender: &str) -> Opened {
        let key = key(agent, sender);
        self.store
            .open(&key, Some(new()))
            .await
            .expect("opens")
            .expect("is created")
    }

    /// Opens a conversation that exists.
    pub(crate) async fn loaded(&self, agent: &str, sender: &str) -> Opened {
        self.find(agent, sender).await.expect("exists")
    }

    pub(crate) async fn find(&self, agent: &str, sender: &str) -> Option<Opened> {
        self.store
            .open(&key(agent, sender), None)
            .await
            .expect("no error")
    }
}

/// Appends records, which must succeed.
pub(crate) async fn append(log: &mut Box<dyn ConversationLog>, records: &[Record]) -> Position {
    log.append(records).await.expect("appends")
}

fn store(dir: &Path, policy: SyncPolicy, disk: &Disk) -> FileStore {
    let sessions = dir.join("sessions");
    let trash = sessions.join("trash");
    let indexes = crabtalk_store::Indexes::in_state(&dir.join("state"));
    FileStore::open(sessions, trash, policy, Arc::new(disk.clone()), &indexes)
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .map(|entries| {
            entries
                .map(|entry| entry.expect("entry"))
                .filter(|entry| entry.file_type().expect("type").is_file())
                .map(|entry| entry.file_name().into_string().expect("utf-8"))
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

pub(crate) fn key(agent: &str, sender: &str) -> ConversationKey {
    ConversationKey::new(agent, sender).expect("valid names")
}

pub(crate) fn new() -> NewConversation {
    NewConversation {
        created_at: "2026-11-01T00:00:00Z".into(),
        cwd: "/work".into(),
    }
}

pub(crate) fn user(text: &str) -> Record {
    Record::Message(Arc::new(Message::user(text)))
}

pub(crate) fn said(text: &str) -> Record {
    Record::Message(Arc::new(Message::assistant(text)))
}

pub(crate) fn titled(title: &str) -> Record {
    Record::Meta(MetaRecord {
        title: Some(title.to_owned()),
        ..MetaRecord::default()
    })
}

pub(crate) fn id(name: &str) -> LogId {
    LogId(name.to_owned())
}

pub(crate) fn compact(summary: &str, keep: usize) -> Record {
    Record::Compact {
        summary: summary.into(),
        title: format!("{summary}."),
        archived_at: "2026-11-02T00:00:00Z".into(),
        keep,
    }
}

pub(crate) fn run(id: u64, phase: RunPhase) -> RunRecord {
    RunRecord {
        id,
        phase,
        origin: "client:local".into(),
        request_id: format!("req-{id}"),
        at: "2026-11-01T00:00:01Z".into(),
        ..RunRecord::default()
    }
}

/// A history as `role: text` lines.
pub(crate) fn told(history: &[Message]) -> Vec<String> {
    history
        .iter()
        .map(|m| format!("{}: {}", m.role.as_str(), m.content))
        .collect()
}

/// Every operation that can fail, in the order of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Open,
    Write,
    Truncate,
    Sync,
    SyncDir,
    Rename,
    MakeDir,
}

type Rule = Box<dyn Fn(Op, u64) -> Option<Fault> + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The operation fails with this error.
    Error(io::ErrorKind),
    /// A partial write of this many bytes.
    Short(usize),
}

/// The real disk, counted, and failing by rule.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Counters>);

#[derive(Default)]
pub(crate) struct Counters {
    rule: Mutex<Option<Rule>>,
    ops: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) listed: AtomicU64,
    pub(crate) looked_at: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) dir_syncs: AtomicU64,
    /// Length of each file at its last sync, by inode.
    synced: Mutex<HashMap<u64, u64>>,
    /// What happens once, just before a log is opened for reading.
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Syncs wait here while a test holds it.
    pub(crate) gate: Mutex<()>,
}

impl std::ops::Deref for Disk {
    type Target = Counters;
    fn deref(&self) -> &Counters {
        &self.0
    }
}

impl Disk {
    /// Fails where the rule says so, given the operation and its number.
    pub(crate) fn fail(&self, rule: impl Fn(Op, u64) -> Option<Fault> + Send + Sync + 'static) {
        self.ops.store(0, SeqCst);
        *self.rule.lock().expect("lock") = Some(Box::new(rule));
    }

    pub(crate) fn fail_always(&self, ops: &'static [Op], kind: io::ErrorKind) {
        self.fail(move |op, _| ops.contains(&op).then_some(Fault::Error(kind)));
    }

    /// Fails no more; how many operations there were.
    pub(crate) fn heal(&self) -> u64 {
        *self.rule.lock().expect("lock") = None;
        self.ops.load(SeqCst)
    }

    /// Cuts each log to its length at its last sync, and removes the others.
    pub(crate) fn cut_power(&self, sessions: &Path) {
        let synced = self.synced.lock().expect("lock");
        for name in names(sessions) {
            let path = sessions.join(name);
            let file = std::fs::File::options().append(true).open(&path);
            match synced.get(&inode(&path)) {
                Some(len) => file.and_then(|file| file.set_len(*len)),
                None => std::fs::remove_file(&path),
            }
            .expect("is ours");
        }
    }

    /// Bytes read since the last call.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.swap(0, SeqCst)
    }

    fn check(&self, op: Op) -> io::Result<Option<usize>> {
        let rule = self.rule.lock().expect("lock");
        let Some(rule) = &*rule else { return Ok(None) };
        match rule(op, self.ops.fetch_add(1, SeqCst)) {
            None => Ok(None),
            Some(Fault::Error(kind)) => Err(kind.into()),
            Some(Fault::Short(n)) => Ok(Some(n)),
        }
    }

    fn wrap(&self, inner: Arc<dyn LogFile>, path: &Path) -> Arc<dyn LogFile> {
        self.opened.fetch_add(1, SeqCst);
        Arc::new(DiskFile {
            inner,
            inode: inode(path),
            disk: self.clone(),
        })
    }
}

impl FileLayer for Disk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Op::MakeDir)?;
        OsFiles.make_dir(dir)
    }

    fn changed(&self, path: &Path) -> io::Result<Option<SystemTime>> {
        self.looked_at.fetch_add(1, SeqCst);
        OsFiles.changed(path)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        // A removal also lists the trash, which is another folder.
        if !dir.ends_with("trash") {
            self.listed.fetch_add(1, SeqCst);
        }
        OsFiles.names(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        self.check(Op::Create)?;
        Ok(self.wrap(OsFiles.create(path)?, path))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn LogFile>> {
        if access == Access::Read
            && let Some(happens) = self.meanwhile.lock().expect("lock").take()
        {
            happens();
        }
        if access != Access::Read {
            self.check(Op::Open)?;
        }
        Ok(self.wrap(OsFiles.open(path, access)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Op::Rename)?;
        OsFiles.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsFiles.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Op::SyncDir)?;
        self.dir_syncs.fetch_add(1, SeqCst);
        dir.metadata().map(drop)
    }
}

fn inode(path: &Path) -> u64 {
    path.metadata().map_or(0, |meta| meta.ino())
}

struct DiskFile {
    inner: Arc<dyn LogFile>,
    inode: u64,
    disk: Disk,
}

impl LogFile for DiskFile {
    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let n = self.inner.read_at(buf, offset)?;
        self.disk.read.fetch_add(n as u64, SeqCst);
        Ok(n)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.disk.check(Op::Write)? {
            Some(short) => self.inner.append(&bytes[..short.min(bytes.len())]),
            None => self.inner.append(bytes),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.disk.check(Op::Write)? {
            Some(short) => self
                .inner
                .write_at(&bytes[..short.min(bytes.len())], offset),
            None => self.inner.write_at(bytes, offset),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk.check(Op::Truncate)?;
        self.inner.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        drop(self.disk.gate.lock().expect("lock"));
        self.disk.check(Op::Sync)?;
        // No test can cut the power, so that waiting for the disk shows nothing.
        self.disk.syncs.fetch_add(1, SeqCst);
        let len = self.inner.stat()?.len;
        self.disk
            .synced
            .lock()
            .expect("lock")
            .insert(self.inode, len);
        Ok(())
    }
}
