//! Creates, renames and discards logs.
//!
//! Invariant: an existing name is never replaced, neither in the folder nor in the trash.

use super::{Files, Names};
use crate::error::failed;
use crate::fs::{Access, FileLayer, LogFile, append_all};
use crate::repair::{Tail, mend, torn_path};
use crate::{encode, load, name};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{Error, NewConversation};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of names to try for a new log: senders with equal slugs already differ in the
/// second one.
const NAME_TRIES: u32 = 100;

/// A new log.
pub(crate) struct Created {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn LogFile>,
    pub(crate) lines: Vec<u8>,
}

impl Names {
    /// Creates the first file of a pair.
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
        let was_current = self.is_current();
        let (name, file) = self.create_file(key)?;
        let path = self.dir.join(&name);
        let filled = fill(&*file, &path, &lines);
        if filled.is_err() && fs.remove(&path).is_err() {
            tracing::warn!(log = %path.display(), "cannot remove an unfinished log");
        }
        if filled.is_ok() {
            self.changed(was_current, |table, state| table.insert(&name, key, state));
        }
        filled.map(|()| Created { path, file, lines })
    }

    fn create_file(&self, key: &ConversationKey) -> Result<(String, Arc<dyn LogFile>), Error> {
        let (agent, sender) = (key.agent.as_str(), key.sender.as_str());
        let plain = std::iter::once((name::slug(sender), 1));
        let distinct = (1..=NAME_TRIES).map(|seq| (name::distinct_slug(sender), seq));
        for (slug, seq) in plain.chain(distinct) {
            let name = name::compose(agent, &slug, seq);
            if self.is_taken(&name)? {
                continue;
            }
            let path = self.dir.join(&name);
            match self.fs.create(&path) {
                Ok(file) => return Ok((name, file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed("create", &path, e)),
            }
        }
        let full = io::Error::new(io::ErrorKind::AlreadyExists, "every file name is taken");
        Err(failed("create a log in", &self.dir, full))
    }

    /// Whether the name, with or without a title, exists, compared case-insensitively.
    fn is_taken(&self, name: &str) -> Result<bool, Error> {
        let base = name
            .strip_suffix(name::SUFFIX)
            .unwrap_or(name)
            .to_ascii_lowercase();
        let alike = self.with_prefix(&name::fold(&base))?;
        Ok(alike.into_iter().any(|row| {
            let other = row.name.to_ascii_lowercase();
            let rest = other.strip_prefix(&base);
            rest.is_some_and(|rest| rest.starts_with(['_', '.']))
        }))
    }

    /// Renames a file to include the title; `None` if the name stays.
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
        let was_current = self.is_current();
        match self.fs.rename(path, &renamed) {
            Ok(()) => {}
            // Another file has the name; the log still contains the title.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(e) => return Err(failed("rename", path, e)),
        }
        if let Err(error) = self.fs.rename(&torn_path(path), &torn_path(&renamed))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(log = %path.display(), %error, "cannot rename the file of torn lines");
        }
        self.changed(was_current, |table, state| {
            table.rename(old, &new, key, state)
        });
        Ok(Some(renamed))
    }

    /// Moves a log and its torn bytes to the trash (STORE-8), with the number of the
    /// removal.
    pub(crate) fn discard(&mut self, log: &str, trash: &Path, removal: u32) -> Result<(), Error> {
        // The trash is in the folder, and is created on demand.
        let was_current = self.is_current();
        self.fs
            .make_dir(trash)
            .map_err(|e| failed("create", trash, e))?;
        let path = self.dir.join(log);
        move_aside(&*self.fs, &path, trash, log, removal).map_err(|e| {
            if e.kind() == io::ErrorKind::NotFound {
                Error::NotFound(log.to_owned())
            } else {
                failed("move to the trash", &path, e)
            }
        })?;
        let torn = torn_path(&path);
        if let Err(e) = move_aside(&*self.fs, &torn, trash, &format!("{log}.torn"), removal)
            && e.kind() != io::ErrorKind::NotFound
        {
            return Err(failed("move to the trash", &torn, e));
        }
        self.changed(was_current, |table, state| table.remove(log, state));
        Ok(())
    }

    /// Moves a folder to the trash, beside the log with this name. If the trash is on
    /// another disk, renames the folder in place.
    pub(crate) fn set_aside(
        &self,
        folder: &Path,
        trash: &Path,
        log: &str,
        kind: &str,
        removal: u32,
    ) -> Result<(), Error> {
        let fs = &*self.fs;
        let io = |e| failed("move to the trash", folder, e);
        fs.make_dir(trash).map_err(|e| failed("create", trash, e))?;
        let moved = match move_aside(fs, folder, trash, &format!("{log}.{kind}"), removal) {
            Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
                let beside = folder.parent().unwrap_or(trash);
                move_aside(fs, folder, beside, &name_beside(folder), removal)
            }
            moved => moved,
        };
        match (moved, folder.parent()) {
            (Ok(()), Some(parent)) => fs.sync_dir(parent).map_err(io),
            (Ok(()), None) => Ok(()),
            (Err(e), _) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            (Err(e), _) => Err(io(e)),
        }
    }

    /// Makes removals durable, so that a power loss does not undo them.
    pub(crate) fn sync_discarded(&self, trash: &Path) -> Result<(), Error> {
        for dir in [trash, &self.dir] {
            self.fs.sync_dir(dir).map_err(|e| failed("sync", dir, e))?;
        }
        Ok(())
    }
}

/// Writes the first lines; truncates a partial write after a failure.
fn fill(file: &dyn LogFile, path: &Path, lines: &[u8]) -> Result<(), Error> {
    append_all(file, lines).map_err(|e| {
        if file.truncate(0).is_err() {
            tracing::warn!(log = %path.display(), "cannot remove a torn first line");
        }
        failed("write the first line of", path, e)
    })
}

/// The new name of a folder that cannot move to the trash because the trash is on
/// another disk.
pub(crate) fn name_beside(folder: &Path) -> String {
    let own = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{own}.removed")
}

/// The name of a removed file; the first removal adds no number.
pub(crate) fn numbered(name: &str, removal: u32) -> String {
    match removal {
        0 | 1 => name.to_owned(),
        removal => format!("{name}.{removal}"),
    }
}

/// Moves a file to a trash folder. If the name exists, the next free number is used.
fn move_aside(
    fs: &dyn FileLayer,
    from: &Path,
    to: &Path,
    name: &str,
    removal: u32,
) -> io::Result<()> {
    for number in removal.. {
        match fs.rename(from, &to.join(numbered(name, number))) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
    unreachable!("the numbers do not end before the names do")
}

#[cfg(test)]
mod tests {
    use super::super::Index;
    use super::*;
    use crate::fs::OsFiles;

    /// Two senders with the same slug: the name of a removed log is used again.
    #[test]
    fn removed_log_does_not_hide_new_log_with_its_name() {
        let home = tempfile::tempdir().expect("temp dir");
        let table = crate::Indexes::in_state(&home.path().join("state")).logs();
        let index = Index::new(Arc::new(OsFiles), home.path().to_owned(), table);
        let mut names = index.lock();
        let key = |sender| ConversationKey::new("crab", sender).expect("valid");
        let (first, second) = (key("tg:1"), key("tg 1"));
        let make = |names: &mut Names, key| {
            let files = names.find(key).expect("finds");
            let new = NewConversation::default();
            let path = names.create(key, &new, &files).expect("creates").path;
            let name = path.file_name().and_then(|name| name.to_str());
            name.expect("a name").to_owned()
        };
        let name = make(&mut names, &first);
        let trash = home.path().join("trash");
        names.discard(&name, &trash, 1).expect("is removed");
        assert_eq!(make(&mut names, &second), name);
        names.note_pair(&name, &first);
        let found = names.find(&second).expect("finds").of_pair;
        assert_eq!(found.len(), 1);
    }
}
