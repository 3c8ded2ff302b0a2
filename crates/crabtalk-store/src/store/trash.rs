//! Moves conversations to the trash and restores them (STORE-8).
//!
//! Invariants: all files of one removal have the same number within the pair, the first
//! none, so that they are restored together; of two removals of a pair the later has the
//! higher number; neither direction replaces a file; files that belong to a conversation
//! move before its log in both directions, so that an interrupted move can be repeated.

use super::{Inner, SyncPolicy};
use crate::error::{failed, unreadable};
use crate::fs::Access;
use crate::index::{Names, name_beside, numbered};
use crate::name;
use crate::repair::torn_path;
use crate::summary::digest;
use crate::tail::{HeadRead, read_head};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{Error, LogId, Summary};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// A log in the trash.
struct Discarded {
    /// The file's name in the trash.
    file: String,
    /// The log's name in the sessions folder.
    log: String,
    seq: u32,
    /// The number of the pair's removal, from 1.
    removal: u32,
}

impl Inner {
    pub(super) fn remove(&self, key: &ConversationKey) -> Result<(), Error> {
        let mut names = self.index.lock();
        let files = names.find(key)?.of_pair;
        if files.is_empty() {
            return Err(Error::NotFound(format!("conversation {key}")));
        }
        let removal = self.next_removal(key)?;
        // Files of the conversation first: after a crash they must not belong to the pair's
        // next conversation.
        for (kind, folder) in &self.belongings {
            let folder = folder(key);
            names.set_aside(&folder, &self.trash_dir, &files[0].name, kind, removal)?;
        }
        // Oldest first: after an interruption, the conversation still exists.
        for found in files.iter().rev() {
            names.discard(&found.name, &self.trash_dir, removal)?;
        }
        self.sync_trash(&names)
    }

    pub(super) fn remove_log(&self, id: &LogId) -> Result<(), Error> {
        let file = id.0.as_str();
        if !name::is_bare(file) {
            return Err(Error::BadId(id.clone()));
        }
        let mut names = self.index.lock();
        let removal = match self.key_of(&self.dir.join(file))? {
            Some(key) => self.next_removal(&key)?,
            None => 1,
        };
        names.discard(file, &self.trash_dir, removal)?;
        self.sync_trash(&names)
    }

    fn sync_trash(&self, names: &Names) -> Result<(), Error> {
        match self.policy {
            SyncPolicy::Never => Ok(()),
            SyncPolicy::Step | SyncPolicy::Run => names.sync_discarded(&self.trash_dir),
        }
    }

    /// Conversations in the trash: the highest log of each removal.
    pub(super) fn trash(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
    ) -> Result<Vec<Summary>, Error> {
        let mut found = Vec::new();
        for file in self.trash_names()? {
            let Some((log, removal)) = name_and_removal(&file) else {
                continue;
            };
            let path = self.trash_dir.join(&file);
            let Ok(opened) = self.fs.open(&path, Access::Read) else {
                continue;
            };
            let Ok(digest) = digest(&*opened) else {
                continue;
            };
            if !super::read::is_of(&digest.key, agent, sender) {
                continue;
            }
            let seq = name::parts(log, &digest.key).map_or(0, |parts| parts.seq);
            let summary = Summary {
                key: digest.key,
                seq,
                superseded: false,
                meta: digest.meta,
                id: LogId(file.clone()),
                message_count: digest.messages,
                has_open_run: digest.is_open,
                failed: digest.failed,
                modified: digest.modified,
            };
            found.push((removal, summary));
        }
        found.sort_by(|(a, x), (b, y)| {
            let order = |removal: u32, s: &Summary| (Reverse(removal), Reverse(s.seq));
            (&x.key, order(*a, x)).cmp(&(&y.key, order(*b, y)))
        });
        // Lower logs of the same removal are superseded.
        let mut seen = HashSet::new();
        found.retain(|(removal, s)| s.seq == 0 || seen.insert((*removal, s.key.clone())));
        Ok(found.into_iter().map(|(_, summary)| summary).collect())
    }

    pub(super) fn restore(&self, key: &ConversationKey, log: Option<&LogId>) -> Result<(), Error> {
        let mut names = self.index.lock();
        let files = names.find(key)?;
        if files.current(&self.dir)?.is_some() {
            return Err(Error::Taken(format!(
                "{key} has a conversation already; remove that one first"
            )));
        }
        let mut all = self.discarded(key)?;
        let chosen = match log {
            Some(log) => all.iter().position(|found| found.file == log.0),
            None => all
                .iter()
                .enumerate()
                .max_by_key(|(_, found)| (found.removal, found.seq))
                .map(|(at, _)| at),
        };
        let Some(chosen) = chosen else {
            let what = log.map_or_else(
                || format!("conversation {key}"),
                |log| format!("{log} of {key}"),
            );
            return Err(Error::NotFound(format!("{what} in the trash")));
        };
        let chosen = all.swap_remove(chosen);
        all.retain(|other| other.removal == chosen.removal && other.seq < chosen.seq);
        all.sort_by_key(|found| found.seq);
        for (kind, folder) in &self.belongings {
            self.bring_back(&chosen, kind, &folder(key))?;
        }
        // The conversation itself last: until then it does not exist.
        for found in all.iter().chain([&chosen]) {
            self.bring_log_back(key, found)?;
        }
        names.list_again();
        self.sync_trash(&names)
    }

    /// Restores the files of tools, unchanged.
    fn bring_back(&self, found: &Discarded, kind: &str, folder: &Path) -> Result<(), Error> {
        let there = numbered(&format!("{}.{kind}", found.log), found.removal);
        let beside = numbered(&name_beside(folder), found.removal);
        let parent = folder.parent().unwrap_or(&self.trash_dir);
        for from in [self.trash_dir.join(there), parent.join(beside)] {
            self.fs
                .make_dir(parent)
                .map_err(|e| failed("create", parent, e))?;
            match self.fs.rename(&from, folder) {
                Ok(()) => {
                    let synced = self.fs.sync_dir(parent);
                    return synced.map_err(|e| failed("sync", parent, e));
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Error::Taken(format!(
                        "{} exists, so {} cannot be moved there; move it away and try again",
                        folder.display(),
                        from.display()
                    )));
                }
                Err(e) => return Err(failed("take from the trash", &from, e)),
            }
        }
        Ok(())
    }

    fn bring_log_back(&self, key: &ConversationKey, found: &Discarded) -> Result<(), Error> {
        let from = self.trash_dir.join(&found.file);
        let torn = self
            .trash_dir
            .join(numbered(&format!("{}.torn", found.log), found.removal));
        // A sender with the same slug may have taken the name since the removal.
        let slug = name::distinct_slug(key.sender.as_str());
        let other = name::compose(key.agent.as_str(), &slug, found.seq.max(1));
        for log in [&found.log, &other] {
            let to = self.dir.join(log);
            match self.fs.rename(&from, &to) {
                Ok(()) => {
                    if let Err(error) = self.fs.rename(&torn, &torn_path(&to))
                        && error.kind() != io::ErrorKind::NotFound
                    {
                        tracing::warn!(log = %to.display(), %error, "cannot take the file of torn lines from the trash");
                    }
                    self.index.touch(&to);
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed("take from the trash", &from, e)),
            }
        }
        Err(Error::Taken(format!(
            "every name for {} is taken in {}",
            found.file,
            self.dir.display()
        )))
    }

    /// One more than the highest number of the pair's removals in the trash.
    fn next_removal(&self, key: &ConversationKey) -> Result<u32, Error> {
        let last = self.discarded(key)?.into_iter().map(|found| found.removal);
        Ok(last.max().map_or(1, |last| last.saturating_add(1)))
    }

    /// The pair's files in the trash.
    fn discarded(&self, key: &ConversationKey) -> Result<Vec<Discarded>, Error> {
        let mut found = Vec::new();
        for file in self.trash_names()? {
            let Some((log, removal)) = name_and_removal(&file) else {
                continue;
            };
            let seq = match name::parts(log, key) {
                Some(parts) => parts.seq,
                None if name::follows_rule(log) => continue,
                None => 0,
            };
            if self.key_of(&self.trash_dir.join(&file))?.as_ref() == Some(key) {
                let log = log.to_owned();
                found.push(Discarded {
                    file,
                    log,
                    seq,
                    removal,
                });
            }
        }
        Ok(found)
    }

    fn trash_names(&self) -> Result<Vec<String>, Error> {
        let listed = self.fs.names(&self.trash_dir);
        listed.map_err(|e| unreadable("list", &self.trash_dir, e))
    }

    /// The conversation of a file; `None` if line 1 names none.
    fn key_of(&self, path: &Path) -> Result<Option<ConversationKey>, Error> {
        let file = match self.fs.open(path, Access::Read) {
            Ok(file) => file,
            Err(e) if is_no_log(&e) => return Ok(None),
            Err(e) => return Err(unreadable("read", path, e)),
        };
        match read_head(&*file).map_err(|e| unreadable("read", path, e))? {
            HeadRead::Good { head, .. } => Ok(head.key()),
            HeadRead::Torn | HeadRead::Broken(_) => Ok(None),
        }
    }
}

fn is_no_log(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
    )
}

/// Splits a name in the trash into the log's name and the number of its removal.
pub(super) fn name_and_removal(file: &str) -> Option<(&str, u32)> {
    if name::is_bare(file) {
        return Some((file, 1));
    }
    let (log, number) = file.rsplit_once('.')?;
    let removal = number.parse().ok().filter(|number| *number > 1)?;
    name::is_bare(log).then_some((log, removal))
}
