//! Finds the files of a pair without reading the others.
//!
//! Invariants: the folder is listed when it changed and somebody asks, never
//! before; a file is a pair's only if its line 1 says so; names that exist are
//! not taken again, whatever their case.

use crate::error::{failed, unreadable};
use crate::fs::{Access, FileLayer, LogFile, append_all};
use crate::name;
use crate::repair::{Tail, mend, torn_path};
use crate::tail::{HeadRead, read_head};
use crate::{encode, load};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{Error, NewConversation};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Names tried for a new log: taken ones come from senders of one slug, which
/// the second try tells apart already.
const NAME_TRIES: u32 = 100;

/// The names in the sessions folder.
pub(crate) struct Index(Mutex<Names>);

pub(crate) struct Names {
    fs: Arc<dyn FileLayer>,
    dir: PathBuf,
    /// State of the folder that the lists below show.
    seen: Option<SystemTime>,
    /// Names after the rule, sorted by `name::sort_key`.
    ruled: Vec<Known>,
    /// Other logs; few.
    strays: Vec<Known>,
}

struct Known {
    name: Box<str>,
    /// Hash of the pair in line 1; 0 before it was read.
    pair: u64,
}

/// A file of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) seq: u32,
}

/// A log made just now.
pub(crate) struct Created {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn LogFile>,
    /// All that is in it.
    pub(crate) lines: Vec<u8>,
}

/// What bears a pair's name.
#[derive(Default)]
pub(crate) struct Files {
    /// Highest seq first.
    pub(crate) of_pair: Vec<Found>,
    /// Fits by name, but its line 1 cannot be read.
    broken: Option<(Found, String)>,
    /// Fits by name, but its creation was cut off within line 1.
    abandoned: Option<Found>,
}

impl Files {
    /// The file that is the conversation, if any. An unreadable file that
    /// would come before it is an error: it may well be the one.
    pub(crate) fn current(&self, dir: &Path) -> Result<Option<&Found>, Error> {
        let current = self.of_pair.first();
        match &self.broken {
            Some((found, reason)) if current.is_none_or(|c| c.seq < found.seq) => {
                Err(Error::Broken {
                    file: dir.join(&found.name),
                    line: 1,
                    reason: reason.clone(),
                })
            }
            _ => Ok(current),
        }
    }
}

impl Index {
    pub(crate) fn new(fs: Arc<dyn FileLayer>, dir: PathBuf) -> Self {
        let names = Names {
            fs,
            dir,
            seen: None,
            ruled: Vec::new(),
            strays: Vec::new(),
        };
        Self(Mutex::new(names))
    }

    /// A panic leaves at worst a list that the next change of the folder mends.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    /// Lists the folder if it changed.
    fn refresh(&mut self) -> Result<(), Error> {
        let io = |e| unreadable("list", &self.dir, e);
        // Looked at before listing: a change in between is seen next time.
        let changed = self.fs.dir_changed(&self.dir).map_err(io)?;
        if changed.is_some() && changed == self.seen {
            return Ok(());
        }
        let mut names = self.fs.names(&self.dir).map_err(io)?;
        names.retain(|name| name::is_bare(name));
        // Somebody else was here, so that what line 1 said is to be read again.
        let all = names.into_iter().map(|name| Known {
            name: name.into(),
            pair: 0,
        });
        (self.ruled, self.strays) = all.partition(|known: &Known| name::follows_rule(&known.name));
        self.ruled
            .sort_by_cached_key(|known| name::sort_key(&known.name));
        self.seen = changed;
        Ok(())
    }

    /// After a change of ours: the lists show it already, so that only the
    /// folder's new state is noted, unless somebody else changed it before.
    fn changing(&self) -> bool {
        self.fs
            .dir_changed(&self.dir)
            .is_ok_and(|now| now.is_some() && now == self.seen)
    }

    fn changed(&mut self, known: bool) {
        self.seen = if known {
            self.fs.dir_changed(&self.dir).ok().flatten()
        } else {
            None
        };
    }

    /// All logs.
    pub(crate) fn all(&mut self) -> Result<Vec<String>, Error> {
        self.refresh()?;
        Ok(self
            .ruled
            .iter()
            .chain(&self.strays)
            .map(|known| known.name.to_string())
            .collect())
    }

    /// The files of a pair.
    pub(crate) fn find(&mut self, key: &ConversationKey) -> Result<Files, Error> {
        self.refresh()?;
        // A `_` follows in the name, so that `tg:1` does not look into `tg:10`.
        let prefix = name::folded_prefix(key) + "-";
        let from = self
            .ruled
            .partition_point(|k| name::sort_key(&k.name) < prefix);
        let pair = hash(key.agent.as_str(), key.sender.as_str());
        let (fs, dir) = (&*self.fs, &*self.dir);
        let mut files = Files::default();
        for known in &mut self.ruled[from..] {
            if !name::sort_key(&known.name).starts_with(&prefix) {
                break;
            }
            if let Some(parts) = name::parts(&known.name, key) {
                let found = Found {
                    name: known.name.to_string(),
                    seq: parts.seq,
                };
                known.look(fs, dir, key, pair, found, &mut files)?;
            }
        }
        for known in &mut self.strays {
            let found = Found {
                name: known.name.to_string(),
                seq: 0,
            };
            known.look(fs, dir, key, pair, found, &mut files)?;
        }
        files
            .of_pair
            .sort_by(|a, b| b.seq.cmp(&a.seq).then_with(|| b.name.cmp(&a.name)));
        Ok(files)
    }

    /// Makes the first file of a pair that has none.
    pub(crate) fn create(
        &mut self,
        key: &ConversationKey,
        new: &NewConversation,
        files: &Files,
    ) -> Result<Created, Error> {
        let fs = Arc::clone(&self.fs);
        let mut lines = Vec::new();
        encode::head(&mut lines, key, new);
        load::first_state(&mut lines, new);
        if let Some(abandoned) = &files.abandoned {
            let path = self.dir.join(&abandoned.name);
            let file = fs
                .open(&path, Access::Append)
                .map_err(|e| failed("open", &path, e))?;
            mend(&*fs, &*file, &path, 0, Tail::Torn)?;
            fill(&*file, &path, &lines)?;
            return Ok(Created { path, file, lines });
        }
        fs.make_dir(&self.dir)
            .map_err(|e| failed("create", &self.dir, e))?;
        self.refresh()?;
        let known = self.changing();
        let (name, file) = self.create_file(key)?;
        let path = self.dir.join(&name);
        let filled = fill(&*file, &path, &lines);
        if filled.is_err() && fs.remove(&path).is_err() {
            tracing::warn!(log = %path.display(), "an unfinished log is left behind");
        }
        if filled.is_ok() {
            self.insert(&name, hash(key.agent.as_str(), key.sender.as_str()));
        }
        self.changed(known);
        filled.map(|()| Created { path, file, lines })
    }

    fn create_file(&self, key: &ConversationKey) -> Result<(String, Arc<dyn LogFile>), Error> {
        let (agent, sender) = (key.agent.as_str(), key.sender.as_str());
        let plain = std::iter::once((name::slug(sender), 1));
        let distinct = (1..=NAME_TRIES).map(|seq| (name::distinct_slug(sender), seq));
        for (slug, seq) in plain.chain(distinct) {
            let name = name::compose(agent, &slug, seq);
            if self.is_taken(&name) {
                continue;
            }
            let path = self.dir.join(&name);
            match self.fs.create(&path) {
                Ok(file) => return Ok((name, file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed("create", &path, e)),
            }
        }
        let full = io::Error::new(io::ErrorKind::AlreadyExists, "every name for it is taken");
        Err(failed("create a log in", &self.dir, full))
    }

    /// Whether the name, or the same with a title, exists in whatever case.
    fn is_taken(&self, name: &str) -> bool {
        let base = name
            .strip_suffix(name::SUFFIX)
            .unwrap_or(name)
            .to_ascii_lowercase();
        let folded = name::fold(&base);
        let from = self
            .ruled
            .partition_point(|k| name::sort_key(&k.name) < folded);
        let alike = self.ruled[from..]
            .iter()
            .take_while(|k| name::sort_key(&k.name).starts_with(&folded));
        alike.map(|k| k.name.to_ascii_lowercase()).any(|other| {
            other
                .strip_prefix(&base)
                .is_some_and(|rest| rest.starts_with(['_', '.']))
        })
    }

    /// Gives a file a name that carries the title; `None` if it stays.
    pub(crate) fn rename_for_title(
        &mut self,
        key: &ConversationKey,
        path: &Path,
        title: &str,
    ) -> Result<Option<PathBuf>, Error> {
        let Some(old) = path.file_name().and_then(|name| name.to_str()) else {
            return Ok(None);
        };
        let Some(parts) = name::parts(old, key) else {
            return Ok(None);
        };
        let new = name::with_title(parts.base, title);
        if new == old {
            return Ok(None);
        }
        let renamed = self.dir.join(&new);
        let known = self.changing();
        match self.fs.rename(path, &renamed) {
            Ok(()) => {}
            // Another file has it; the title stands in the log all the same.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(e) => return Err(failed("rename", path, e)),
        }
        if let Err(error) = self.fs.rename(&torn_path(path), &torn_path(&renamed))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(log = %path.display(), %error, "its torn lines keep the old name");
        }
        self.forget(old);
        self.insert(&new, hash(key.agent.as_str(), key.sender.as_str()));
        self.changed(known);
        Ok(Some(renamed))
    }

    /// Moves a log, and what was torn from it, to the trash (STORE-8).
    pub(crate) fn discard(&mut self, log: &str, trash: &Path) -> Result<(), Error> {
        self.fs
            .make_dir(trash)
            .map_err(|e| failed("create", trash, e))?;
        let path = self.dir.join(log);
        let known = self.changing();
        move_aside(&*self.fs, &path, trash, log).map_err(|e| {
            if e.kind() == io::ErrorKind::NotFound {
                Error::NotFound(log.to_owned())
            } else {
                failed("move to the trash", &path, e)
            }
        })?;
        let torn = torn_path(&path);
        if let Err(e) = move_aside(&*self.fs, &torn, trash, &format!("{log}.torn"))
            && e.kind() != io::ErrorKind::NotFound
        {
            return Err(failed("move to the trash", &torn, e));
        }
        self.forget(log);
        self.changed(known);
        Ok(())
    }

    /// Makes removals durable, lest a power cut undoes them.
    pub(crate) fn sync_discarded(&self, trash: &Path) -> Result<(), Error> {
        for dir in [trash, &self.dir] {
            self.fs.sync_dir(dir).map_err(|e| failed("sync", dir, e))?;
        }
        Ok(())
    }

    fn insert(&mut self, name: &str, pair: u64) {
        let known = Known {
            name: name.into(),
            pair,
        };
        let key = name::sort_key(name);
        let at = self
            .ruled
            .partition_point(|k| name::sort_key(&k.name) < key);
        self.ruled.insert(at, known);
    }

    fn forget(&mut self, name: &str) {
        self.ruled.retain(|known| &*known.name != name);
        self.strays.retain(|known| &*known.name != name);
    }
}

impl Known {
    /// Reads line 1 where that is not done yet and sorts the file in.
    fn look(
        &mut self,
        fs: &dyn FileLayer,
        dir: &Path,
        key: &ConversationKey,
        pair: u64,
        found: Found,
        files: &mut Files,
    ) -> Result<(), Error> {
        if self.pair != 0 && self.pair != pair {
            return Ok(());
        }
        let path = dir.join(&*self.name);
        let head = fs
            .open(&path, Access::Read)
            .and_then(|file| read_head(&*file));
        match head {
            Ok(HeadRead::Good { head, .. }) => {
                self.pair = hash(&head.agent, &head.created_by);
                if head.is_of(key) {
                    files.of_pair.push(found);
                }
            }
            // A stray may be anybody's.
            Ok(HeadRead::Torn | HeadRead::Broken(_)) if !name::follows_rule(&self.name) => {}
            Ok(HeadRead::Torn) => files.abandoned = Some(found),
            Ok(HeadRead::Broken(reason)) => {
                if files
                    .broken
                    .as_ref()
                    .is_none_or(|(other, _)| other.seq < found.seq)
                {
                    files.broken = Some((found, reason));
                }
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                ) => {}
            Err(e) => return Err(unreadable("read", &path, e)),
        }
        Ok(())
    }
}

/// Writes the first lines; what is left of a failure is cut off again.
fn fill(file: &dyn LogFile, path: &Path, lines: &[u8]) -> Result<(), Error> {
    append_all(file, lines).map_err(|e| {
        if file.truncate(0).is_err() {
            tracing::warn!(log = %path.display(), "a torn first line is left for now");
        }
        failed("write the first line of", path, e)
    })
}

/// Moves a file to a folder under a name that is free there.
fn move_aside(fs: &dyn FileLayer, from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let mut target = to.join(name);
    for n in 2.. {
        match fs.rename(from, &target) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                target = to.join(format!("{name}.{n}"));
            }
            result => return result,
        }
    }
    unreachable!("the numbers do not end before the names do")
}

fn hash(agent: &str, sender: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (agent, sender).hash(&mut hasher);
    // 0 stands for unknown.
    hasher.finish().max(1)
}
