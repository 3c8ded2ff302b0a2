//! Finds the files of a pair without reading the others.
//!
//! Invariants: the folder is listed when it changed and somebody asks, never
//! before; a file is a pair's only if its line 1 says so; names that exist are
//! not taken again, whatever their case.

mod change;
mod kept;
mod list;
mod recent;

pub(crate) use change::{name_beside, numbered};

use crate::error::unreadable;
use crate::fs::{Access, FileLayer};
use crate::name;
use crate::tail::{HeadRead, read_head};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::Error;
use kept::Kept;
use list::NameList;
use recent::Touched;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The names in the sessions folder.
pub(crate) struct Index {
    names: Mutex<Names>,
    touched: Mutex<Touched>,
    kept: Arc<Kept>,
}

pub(crate) struct Names {
    fs: Arc<dyn FileLayer>,
    dir: PathBuf,
    /// State of the folder that the lists below show.
    seen: Option<SystemTime>,
    /// Names after the rule, sorted by `name::sort_key`.
    ruled: NameList,
    /// Other logs; few.
    strays: NameList,
    kept: Arc<Kept>,
    /// How many of the last of `ruled` have the times that were kept.
    unchecked: usize,
}

/// A file of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) seq: u32,
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
        let kept = Arc::new(Kept::of(&dir));
        let names = Names {
            fs,
            dir,
            kept: Arc::clone(&kept),
            unchecked: 0,
            seen: None,
            ruled: NameList::default(),
            strays: NameList::default(),
        };
        Self {
            names: Mutex::new(names),
            touched: Mutex::new(Touched::default()),
            kept,
        }
    }

    /// A panic leaves at worst a list that the next change of the folder mends.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let touched = self.take_touched();
        let mut names = self.lock();
        names.forget_times(&touched);
        names.keep();
    }
}

impl Names {
    /// Lists the folder if it changed.
    fn refresh(&mut self) -> Result<(), Error> {
        let dir = self.dir.clone();
        let io = |e| unreadable("list", &dir, e);
        // Looked at before listing: a change in between is seen next time.
        let changed = self.fs.changed(&self.dir).map_err(io)?;
        if changed.is_some() && changed == self.seen {
            return Ok(());
        }
        if self.seen.is_none() && self.take_kept(changed) {
            self.seen = changed;
            return Ok(());
        }
        // Somebody else was here.
        self.kept.expire();
        let mut names = self.fs.names(&self.dir).map_err(io)?;
        names.retain(|name| name::is_bare(name));
        // What line 1 said is to be read again.
        names.sort_by_cached_key(|name| name::sort_key(name));
        let all = || names.iter().map(String::as_str);
        self.ruled = NameList::new(all().filter(|name| name::follows_rule(name)));
        self.strays = NameList::new(all().filter(|name| !name::follows_rule(name)));
        self.unchecked = 0;
        if self.ruled.len() >= kept::WORTH_KEEPING {
            self.kept.make_room();
        }
        self.seen = changed;
        Ok(())
    }

    /// Has the folder listed anew: a name is gone that should be there.
    pub(crate) fn list_again(&mut self) {
        self.kept.expire();
        self.seen = None;
    }

    /// After a change of ours: the lists show it already, so that only the
    /// folder's new state is noted, unless somebody else changed it before.
    fn changing(&self) -> bool {
        self.fs
            .changed(&self.dir)
            .is_ok_and(|now| now.is_some() && now == self.seen)
    }

    fn changed(&mut self, known: bool) {
        self.seen = if known {
            self.fs.changed(&self.dir).ok().flatten()
        } else {
            None
        };
        match self.seen {
            Some(state) => self.kept.note_folder(state),
            None => self.kept.expire(),
        }
    }

    /// All logs.
    pub(crate) fn all(&mut self) -> Result<Vec<String>, Error> {
        self.refresh()?;
        let all = self.ruled.iter().chain(self.strays.iter());
        Ok(all.map(str::to_owned).collect())
    }

    /// The files of a pair.
    pub(crate) fn find(&mut self, key: &ConversationKey) -> Result<Files, Error> {
        self.refresh()?;
        // A `_` follows in the name, so that `tg:1` does not look into `tg:10`.
        let prefix = name::folded_prefix(key) + "-";
        let ruled = &mut self.ruled;
        let from = ruled.partition_point(|name| name::sorts_before(name, &prefix));
        let pair = hash(key.agent.as_str(), key.sender.as_str());
        let (fs, dir) = (&*self.fs, &*self.dir);
        let mut files = Files::default();
        for at in from..ruled.len() {
            let name = ruled.name(at).to_owned();
            if !name::sort_key_starts_with(&name, &prefix) {
                break;
            }
            if let Some(parts) = name::parts(&name, key) {
                let seq = parts.seq;
                let found = Found { name, seq };
                look(fs, dir, (key, pair), ruled.pair(at), found, &mut files)?;
            }
        }
        for at in 0..self.strays.len() {
            let name = self.strays.name(at).to_owned();
            let found = Found { name, seq: 0 };
            let known = self.strays.pair(at);
            look(fs, dir, (key, pair), known, found, &mut files)?;
        }
        files
            .of_pair
            .sort_by(|a, b| b.seq.cmp(&a.seq).then_with(|| b.name.cmp(&a.name)));
        Ok(files)
    }

    /// Takes those names out of which line 1 was read, and was good.
    pub(crate) fn retain_unread(&mut self, names: &mut Vec<String>) -> Result<(), Error> {
        self.refresh()?;
        let ruled = (0..self.ruled.len()).filter(|at| self.ruled.is_read(*at));
        let strays = (0..self.strays.len()).filter(|at| self.strays.is_read(*at));
        let ruled = ruled.map(|at| self.ruled.name(at));
        let read: HashSet<&str> = ruled.chain(strays.map(|at| self.strays.name(at))).collect();
        names.retain(|name| !read.contains(&**name));
        Ok(())
    }

    /// Notes whose log it is, as line 1 said a moment ago. What is known counts: the name
    /// may be that of another log by now.
    pub(crate) fn note_pair(&mut self, file: &str, key: &ConversationKey) {
        let pair = hash(key.agent.as_str(), key.sender.as_str());
        let ruled = self.ruled_at(file);
        let stray = self.strays.iter().position(|name| name == file);
        let known = match (ruled, stray) {
            (Some(at), _) => self.ruled.pair(at),
            (None, Some(at)) => self.strays.pair(at),
            (None, None) => return,
        };
        if *known == 0 {
            *known = pair;
        }
    }

    /// Where a name that follows the rule stands, or would.
    fn place(&self, name: &str) -> usize {
        let key = name::sort_key(name);
        self.ruled.partition_point(|k| name::sorts_before(k, &key))
    }

    /// Where a name stands that follows the rule, if it is there. Others may have its key.
    fn ruled_at(&self, name: &str) -> Option<usize> {
        let key = name::sort_key(name);
        (self.place(name)..self.ruled.len())
            .take_while(|at| name::sort_key(self.ruled.name(*at)) == key)
            .find(|at| self.ruled.name(*at) == name)
    }

    fn insert(&mut self, name: &str, pair: u64) {
        let at = self.place(name);
        self.ruled.insert(at, name, pair);
        self.unchecked += usize::from(self.unchecked > 0);
    }

    fn forget(&mut self, name: &str) {
        self.ruled.remove(name);
        self.strays.remove(name);
    }
}

/// Reads line 1 where that is not done yet and sorts the file in. `known` is
/// the hash of the pair in it, 0 before it was read.
fn look(
    fs: &dyn FileLayer,
    dir: &Path,
    (key, pair): (&ConversationKey, u64),
    known: &mut u64,
    found: Found,
    files: &mut Files,
) -> Result<(), Error> {
    if *known != 0 && *known != pair {
        return Ok(());
    }
    let path = dir.join(&found.name);
    let head = fs
        .open(&path, Access::Read)
        .and_then(|file| read_head(&*file));
    match head {
        Ok(HeadRead::Good { head, .. }) => {
            *known = hash(&head.agent, &head.created_by);
            if head.is_of(key) {
                files.of_pair.push(found);
            }
        }
        // A stray may be anybody's.
        Ok(HeadRead::Torn | HeadRead::Broken(_)) if !name::follows_rule(&found.name) => {}
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

fn hash(agent: &str, sender: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (agent, sender).hash(&mut hasher);
    // 0 stands for unknown.
    hasher.finish().max(1)
}
