//! Finds unreadable files and lines, for diagnostics.
//!
//! Invariants: nothing is changed; faults that the next opening repairs are not reported;
//! opening and checking apply the same rules to a line.

use super::{Inner, trash};
use crate::error::unreadable;
use crate::fs::{Access, LogFile};
use crate::line::{self, Line};
use crate::name;
use crate::tail::{Backward, HeadRead, read_head};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{BrokenLog, Check, Error, LogId};
use std::io;

/// Extension of the file for torn bytes.
const TORN: &str = ".torn";

impl Inner {
    /// Names of files that are or could be logs, sorted. Without `lines`, those whose line 1 is
    /// known are omitted.
    pub(super) fn file_names(&self, check: Check) -> Result<Vec<String>, Error> {
        let Check {
            in_trash, lines, ..
        } = check;
        let dir = match in_trash {
            true => &self.trash_dir,
            false => &self.dir,
        };
        let listed = self.fs.names(dir);
        let mut names = listed.map_err(|e| unreadable("list", dir, e))?;
        names.retain(|name| match in_trash {
            // The trash also contains folders of tools beside the logs.
            true => trash::name_and_removal(name).is_some(),
            false => {
                let is_ours = name.starts_with('.') || name.ends_with(TORN);
                !is_ours && self.dir.join(name) != self.trash_dir
            }
        });
        if !in_trash && !lines {
            self.index.lock().retain_unread(&mut names)?;
        }
        names.sort();
        Ok(names)
    }

    /// Returns the unreadable parts of a file.
    pub(super) fn broken(&self, check: Check, file: &str) -> Option<BrokenLog> {
        let Check {
            in_trash, lines, ..
        } = check;
        let path = match in_trash {
            true => self.trash_dir.join(file),
            false => self.dir.join(file),
        };
        let unread = |reason: String| BrokenLog {
            id: LogId(file.to_owned()),
            reason,
            ..BrokenLog::default()
        };
        if !in_trash && !name::is_bare(file) {
            return Some(unread("not the log of a conversation".into()));
        }
        let looked = self
            .fs
            .open(&path, Access::Read)
            .and_then(|log| look(&*log, lines));
        match looked {
            Ok(FileCheck::Good(key)) => {
                if !in_trash {
                    self.index.lock().note_pair(file, &key);
                }
                None
            }
            Ok(FileCheck::Unfinished) => None,
            Ok(FileCheck::Broken(found)) => Some(BrokenLog {
                id: LogId(file.to_owned()),
                ..found
            }),
            // The file was removed or renamed concurrently.
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => Some(unread(e.to_string())),
        }
    }
}

/// Result of checking a file.
enum FileCheck {
    Good(ConversationKey),
    /// The creation was interrupted; the next open creates the file again.
    Unfinished,
    Broken(BrokenLog),
}

fn look(log: &dyn LogFile, lines: bool) -> io::Result<FileCheck> {
    let (head, floor) = match read_head(log)? {
        HeadRead::Good { head, end, .. } => (head, end),
        HeadRead::Torn => return cut_off(log),
        HeadRead::Broken(reason) => return Ok(nothing_of_it(reason)),
    };
    let Some(key) = head.key() else {
        let reason = "line 1 has no agent or no sender";
        return Ok(nothing_of_it(reason.into()));
    };
    let found = match lines {
        true => bad_lines(log, floor)?,
        false => BrokenLog::default(),
    };
    if found.lines == 0 {
        return Ok(FileCheck::Good(key));
    }
    let key = Some(key);
    Ok(FileCheck::Broken(BrokenLog { key, ..found }))
}

fn nothing_of_it(reason: String) -> FileCheck {
    FileCheck::Broken(BrokenLog {
        reason,
        ..BrokenLog::default()
    })
}

/// Classifies a file that ends within line 1: an interrupted creation is repaired by the
/// next opening, but a file that never was a log is reported.
fn cut_off(log: &dyn LogFile) -> io::Result<FileCheck> {
    let mut first = [0];
    if log.read_at(&mut first, 0)? == 1 && first != *b"{" {
        return Ok(nothing_of_it("not the log of a conversation".into()));
    }
    Ok(FileCheck::Unfinished)
}

fn bad_lines(log: &dyn LogFile, floor: u64) -> io::Result<BrokenLog> {
    let mut found = BrokenLog::default();
    let mut lines = Backward::new(log, floor, log.stat()?.len);
    let mut is_last = true;
    while let Some((offset, bytes)) = lines.prev()? {
        if line::is_blank(bytes) {
            continue;
        }
        match line::parse(bytes) {
            Ok(Line::Message(_)) => found.messages += 1,
            Ok(Line::Marker(_) | Line::Rewind(..) | Line::Meta(..) | Line::Run(..)) => {}
            Ok(Line::ForeignRole | Line::Unknown) => {}
            // The line is being written, or the next opening moves it aside.
            Err(_) if is_last => {}
            Err(reason) => {
                found.lines += 1;
                (found.first_at, found.reason) = (offset, reason);
            }
        }
        is_last = false;
    }
    Ok(found)
}
