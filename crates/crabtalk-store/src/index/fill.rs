//! Indexes messages for the search over all conversations.
//!
//! Invariants: a step reads a bounded part of the logs; only whole lines are indexed; a
//! log that is shorter than its indexed part is reindexed.

use super::Index;
use crate::derived::{Indexed, Turn, Unindexed};
use crate::fs::{Access, FileLayer};
use crate::line::{self, Line};
use crate::tail::{HeadRead, read_head, whole_lines};
use crabtalk_domain::records;
use crabtalk_domain::storage::Error;
use jiff::Timestamp;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::UNIX_EPOCH;

/// Maximum bytes of logs to read in one step: some hundredths of a second of work.
const STEP_BYTES: u64 = 512 * 1024;

/// Maximum number of logs in one step.
const STEP_LOGS: u32 = 256;

impl Index {
    /// Runs one step of the repeating pass over all logs: finds changed logs and indexes new
    /// lines. Returns whether work remains.
    pub(crate) fn maintain(&self) -> Result<bool, Error> {
        let more = self.catch_up(true)?;
        if !more {
            self.lock().unchecked = Some(String::new());
        }
        Ok(more)
    }

    /// Indexes some pending lines and returns whether work remains. Checks logs not yet
    /// checked in this pass, or since the daemon started.
    pub(crate) fn catch_up(&self, is_pass: bool) -> Result<bool, Error> {
        let mut names = self.lock();
        names.refresh()?;
        let looked = match is_pass || !names.was_checked {
            true => names.check_some().map(|()| names.unchecked.is_some()),
            false => Ok(false),
        };
        names.was_checked |= names.unchecked.is_none();
        drop(names);
        let more = looked.and_then(|more| Ok(self.index_some()? || more));
        Ok(more.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot update the index of conversations");
            false
        }))
    }

    /// Indexes some pending lines, and returns whether more remain.
    fn index_some(&self) -> Result<bool, records::Error> {
        let _one_at_a_time = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget_touched();
        let (fs, dir) = {
            let names = self.lock();
            (Arc::clone(&names.fs), names.dir.clone())
        };
        let logs = self.table.unindexed(STEP_LOGS)?;
        let mut more = logs.len() == STEP_LOGS as usize;
        let (mut parts, mut room) = (Vec::new(), STEP_BYTES);
        for log in logs {
            if room == 0 {
                more = true;
                break;
            }
            match part(&*fs, &dir.join(&log.name), log.clone(), &mut room) {
                Ok(part) => {
                    more |= part.complete_at.is_none();
                    parts.push(part);
                }
                // The log was renamed or removed: the folder is listed again.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(file = log.name, %error, "cannot index a log");
                    let modified = fs.changed(&dir.join(&log.name)).ok().flatten();
                    parts.push(Indexed {
                        indexed: log.indexed,
                        log,
                        pair: None,
                        anew: false,
                        turns: Vec::new(),
                        complete_at: Some(modified.unwrap_or(UNIX_EPOCH)),
                    });
                }
            }
        }
        if !parts.is_empty() {
            self.table.add_turns(parts)?;
        }
        Ok(more)
    }
}

/// Reads the next unindexed part of a log.
fn part(fs: &dyn FileLayer, path: &Path, log: Unindexed, room: &mut u64) -> io::Result<Indexed> {
    let file = fs.open(path, Access::Read)?;
    let stat = file.stat()?;
    let mut part = Indexed {
        indexed: log.indexed,
        log,
        pair: None,
        anew: false,
        turns: Vec::new(),
        complete_at: Some(stat.modified),
    };
    let HeadRead::Good { head, end, .. } = read_head(&*file)? else {
        (part.anew, part.indexed) = (true, 0);
        return Ok(part);
    };
    part.pair = head.key().map(|key| (key.agent.into(), key.sender.into()));
    if stat.len == part.indexed && stat.modified == part.log.indexed_at {
        return Ok(part);
    }
    if part.indexed >= stat.len || part.indexed < end {
        (part.anew, part.indexed) = (true, end);
    }
    let block = whole_lines(&*file, part.indexed, stat.len, (*room).min(STEP_BYTES))?;
    *room = room.saturating_sub(block.len() as u64);
    let mut at = seconds(&head.created_at).unwrap_or_default();
    let mut title = Some(head.title).filter(|title| part.anew && !title.is_empty());
    for (offset, bytes) in lines(&block) {
        match line::parse(bytes) {
            Ok(Line::Message(message)) => {
                at = seconds(&message.at).unwrap_or(at);
                part.turns.push(Turn {
                    at,
                    entry: Some(part.indexed + offset),
                    text: message.content,
                });
            }
            Ok(Line::Meta(meta, _)) => title = meta.title.or(title),
            Ok(Line::Marker(_) | Line::Rewind(..) | Line::Run(..)) => {}
            Ok(Line::ForeignRole | Line::Unknown) | Err(_) => {}
        }
    }
    part.turns.extend(title.map(|text| Turn {
        at,
        entry: None,
        text,
    }));
    part.indexed += block.len() as u64;
    if !block.is_empty() && part.indexed < stat.len {
        part.complete_at = None;
    }
    Ok(part)
}

/// The lines of a block with their offsets.
fn lines(block: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    block
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let at = offset;
            offset += line.len() as u64;
            (at, line)
        })
}

fn seconds(at: &str) -> Option<i64> {
    at.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
