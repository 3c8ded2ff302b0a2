//! Read-only operations: lists and pages.
//!
//! Invariant: a concurrent append is visible completely or not at all, and an unreadable
//! line hides no other line.

use super::Inner;
use crate::archive::{Placed, markers};
use crate::error::unreadable;
use crate::fs::{Access, LogFile};
use crate::index::PairFile;
use crate::line::{self, Line};
use crate::name;
use crate::page::{entry_of, page};
use crate::summary::{Unlisted, digest};
use crate::tail::{Backward, HeadRead, line_at, read_head};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{Error, LogEntry, LogId, LogPart, Page, RunTrace, Summary, Tracing};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

/// Number of names to read in addition to those requested, to replace unreadable logs.
const SPARE_NAMES: usize = 16;

/// Number of attempts to list the latest logs, since a new title may rename one of them
/// concurrently.
const LATEST_TRIES: usize = 3;

/// A log opened for reading.
pub(super) struct ReadLog {
    pub(super) file: Arc<dyn LogFile>,
    pub(super) path: PathBuf,
    /// Offset after line 1.
    floor: u64,
}

impl ReadLog {
    pub(super) fn markers(&self) -> Result<Vec<Placed>, Error> {
        markers(&*self.file, &self.path, self.floor)
    }
}

impl Inner {
    pub(super) fn list(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
    ) -> Result<Vec<Summary>, Error> {
        let names = self.names(agent, sender)?;
        let mut list = self.summaries(&names);
        // A new title may have renamed some logs concurrently.
        if list.len() < names.len() {
            let known: HashSet<&str> = names.iter().map(String::as_str).collect();
            let mut now = self.index.lock().all()?;
            now.retain(|name| !known.contains(&**name));
            list.extend(self.summaries(&now));
        }
        list.retain(|summary| is_of(&summary.key, agent, sender));
        mark_superseded(&mut list);
        list.sort_by(|a, b| (&a.key, a.seq, &a.id).cmp(&(&b.key, b.seq, &b.id)));
        Ok(list)
    }

    /// The latest logs. Of other logs only the time of change is read, once.
    pub(super) fn latest(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Summary>, Error> {
        // The names of one pair's logs are known.
        let is_pair = agent.is_some() && sender.is_some();
        let mut found = None;
        for _ in 0..LATEST_TRIES {
            if is_pair || found.is_some() {
                break;
            }
            found = self.try_latest(agent, sender, limit)?;
        }
        let mut list = match found {
            Some(list) => list,
            None => self.list(agent, sender)?,
        };
        list.sort_by_key(|summary| Reverse(summary.modified));
        list.truncate(limit);
        Ok(list)
    }

    /// The latest logs; `None` if the index fails, or if one of them was renamed
    /// concurrently.
    fn try_latest(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
        limit: usize,
    ) -> Result<Option<Vec<Summary>>, Error> {
        let mut list: Vec<Summary> = Vec::new();
        for most in [limit.saturating_add(SPARE_NAMES), usize::MAX] {
            let Some(names) = self.index.latest(agent, sender, most)? else {
                return Ok(None);
            };
            list.clear();
            for name in &names {
                if list.len() >= limit {
                    break;
                }
                let found = self.summaries(slice::from_ref(name)).pop();
                if found.is_none() && matches!(self.fs.changed(&self.dir.join(name)), Ok(None)) {
                    self.index.lock().list_again();
                    return Ok(None);
                }
                list.extend(found.filter(|summary| is_of(&summary.key, agent, sender)));
            }
            if list.len() >= limit || names.len() < most {
                break;
            }
        }
        for summary in &mut list {
            let files = self.index.lock().find(&summary.key)?;
            let current = files.of_pair.first();
            summary.superseded = current.is_none_or(|current| current.name != summary.id.0);
        }
        Ok(Some(list))
    }

    /// Names of logs that may belong to an agent or sender.
    fn names(&self, agent: Option<&str>, sender: Option<&str>) -> Result<Vec<String>, Error> {
        let (Some(agent), Some(sender)) = (agent, sender) else {
            return self.index.lock().all();
        };
        let Ok(key) = ConversationKey::new(agent, sender) else {
            return Ok(Vec::new());
        };
        let files = self.files(&key)?.into_iter();
        Ok(files.map(|found| found.name).collect())
    }

    fn summaries(&self, names: &[String]) -> Vec<Summary> {
        let summary = |name: &String| match self.summary(name) {
            Ok(summary) => Some(summary),
            Err(Unlisted::Torn) => None,
            Err(Unlisted::Io(e)) if e.kind() == io::ErrorKind::NotFound => None,
            Err(Unlisted::Io(error)) => {
                tracing::warn!(file = name, %error, "skipped a log that cannot be read");
                None
            }
            Err(Unlisted::Broken(reason)) => {
                tracing::warn!(file = name, reason, "skipped a log that cannot be read");
                None
            }
        };
        names.iter().filter_map(summary).collect()
    }

    fn summary(&self, file: &str) -> Result<Summary, Unlisted> {
        let path = self.dir.join(file);
        let log = self.fs.open(&path, Access::Read)?;
        let digest = digest(&*log)?;
        let seq = name::parts(file, &digest.key).map_or(0, |parts| parts.seq);
        Ok(Summary {
            key: digest.key,
            seq,
            superseded: false,
            meta: digest.meta,
            id: LogId(file.to_owned()),
            message_count: digest.messages,
            has_open_run: digest.is_open,
            failed: digest.failed,
            modified: digest.modified,
        })
    }

    pub(super) fn page(
        &self,
        source: &LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page, Error> {
        let (log, from, to) = match source {
            LogPart::Conversation(key) => (self.log_of(key)?, 0, u64::MAX),
            LogPart::Log(id) => (self.log_named(id)?, 0, u64::MAX),
            LogPart::Archive(key, index) => {
                let log = self.log_of(key)?;
                let markers = log.markers()?;
                let at = (*index as usize).checked_sub(1);
                let missing = || Error::NotFound(format!("archive {index} of {key}"));
                let at = at.filter(|at| *at < markers.len()).ok_or_else(missing)?;
                let from = at.checked_sub(1).map_or(0, |before| markers[before].end);
                (log, from, markers[at].offset)
            }
        };
        let len = log
            .file
            .stat()
            .map_err(|e| unreadable("stat", &log.path, e))?
            .len;
        let end = to.min(len).min(before.unwrap_or(u64::MAX));
        let is_newest = before.is_none() && to == u64::MAX;
        page(
            &*log.file,
            &log.path,
            log.floor.max(from),
            end,
            limit,
            is_newest,
        )
    }

    pub(super) fn entries(
        &self,
        key: &ConversationKey,
        indexes: &[u64],
    ) -> Result<Vec<LogEntry>, Error> {
        let log = self.log_of(key)?;
        let io = |e| unreadable("read", &log.path, e);
        let len = log.file.stat().map_err(io)?.len;
        let mut entries = Vec::with_capacity(indexes.len());
        for &index in indexes {
            let line = line_at(&*log.file, index, len).map_err(io)?;
            entries.extend(line.and_then(|line| entry_of(index, &line)));
        }
        Ok(entries)
    }

    pub(super) fn trace(&self, key: &ConversationKey, run: u64) -> Result<Option<RunTrace>, Error> {
        let log = self.log_of(key)?;
        let io = |e| unreadable("read", &log.path, e);
        let end = log.file.stat().map_err(io)?.len;
        let mut lines = Backward::new(&*log.file, log.floor, end);
        let mut tracing = Tracing::of(run);
        while let Some((_, bytes)) = lines.prev().map_err(io)? {
            // Unreadable lines contain no runs.
            match line::parse(bytes) {
                Ok(Line::Message(message)) => tracing.message(&message),
                Ok(Line::Run(run, _)) => {
                    if let ControlFlow::Break(found) = tracing.run(&run) {
                        return Ok(found);
                    }
                }
                Ok(Line::Marker(_) | Line::Rewind(..) | Line::Meta(..))
                | Ok(Line::ForeignRole | Line::Unknown)
                | Err(_) => {}
            }
        }
        Ok(None)
    }

    pub(super) fn summary_of(&self, id: &LogId) -> Result<Summary, Error> {
        let log = self.log_named(id)?;
        let mut summary = self.summary(&id.0).map_err(|e| match e {
            Unlisted::Torn => Error::NotFound(id.to_string()),
            Unlisted::Broken(reason) => Error::Broken {
                log: log.path.display().to_string(),
                line: 1,
                reason,
            },
            Unlisted::Io(e) => unreadable("read", &log.path, e),
        })?;
        let current = self.files(&summary.key)?.into_iter().next();
        summary.superseded = current.is_none_or(|current| current.name != id.0);
        Ok(summary)
    }

    fn files(&self, key: &ConversationKey) -> Result<Vec<PairFile>, Error> {
        self.index.lock().find(key).map(|files| files.of_pair)
    }

    pub(super) fn log_of(&self, key: &ConversationKey) -> Result<ReadLog, Error> {
        // Locked while opening, so that no title renames the file.
        let mut names = self.index.lock();
        let files = names.find(key)?;
        match files.current(&self.dir)? {
            Some(found) => self.open_to_read(&found.name),
            None => Err(Error::NotFound(format!("conversation {key}"))),
        }
    }

    fn log_named(&self, id: &LogId) -> Result<ReadLog, Error> {
        if !name::is_bare(&id.0) {
            return Err(Error::BadId(id.clone()));
        }
        self.open_to_read(&id.0)
    }

    pub(super) fn open_to_read(&self, name: &str) -> Result<ReadLog, Error> {
        let path = self.dir.join(name);
        let file = match self.fs.open(&path, Access::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NotFound(name.to_owned()));
            }
            Err(e) => return Err(unreadable("open", &path, e)),
        };
        match read_head(&*file).map_err(|e| unreadable("read", &path, e))? {
            HeadRead::Good { end, .. } => Ok(ReadLog {
                file,
                path,
                floor: end,
            }),
            HeadRead::Torn => Err(Error::NotFound(name.to_owned())),
            HeadRead::Broken(reason) => Err(Error::Broken {
                log: path.display().to_string(),
                line: 1,
                reason,
            }),
        }
    }
}

pub(super) fn is_of(key: &ConversationKey, agent: Option<&str>, sender: Option<&str>) -> bool {
    agent.is_none_or(|agent| key.agent.as_str() == agent)
        && sender.is_none_or(|sender| key.sender.as_str() == sender)
}

/// Marks all but the highest file of each pair, and those whose names fit another pair.
fn mark_superseded(list: &mut [Summary]) {
    let eligible =
        |s: &Summary| name::parts(&s.id.0, &s.key).is_some() || !name::follows_rule(&s.id.0);
    let mut current: HashMap<ConversationKey, (u32, LogId)> = HashMap::new();
    for summary in list.iter().filter(|s| eligible(s)) {
        let this = (summary.seq, summary.id.clone());
        let highest = current
            .entry(summary.key.clone())
            .or_insert_with(|| this.clone());
        if *highest < this {
            *highest = this;
        }
    }
    for summary in list {
        let highest = current.get(&summary.key);
        summary.superseded = highest.is_none_or(|(_, id)| *id != summary.id);
    }
}
