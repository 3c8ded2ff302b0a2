//! Reads pages of a log, from its end backwards.
//!
//! Invariants: the cost of a page is bounded by its content plus [`MAX_IMAGE_TEXT`]; an
//! unreadable line hides no other line; a step's results are in the order of their calls
//! while indexes ascend; no page begins between a call and its results.

use crate::error::unreadable;
use crate::fs::LogFile;
use crate::line::{self, Line};
use crate::tail::Backward;
use crabtalk_domain::storage::{Error, LogEntry, Page, Steering, order_results};
use crabtalk_domain::{Message, Role};
use std::path::Path;

/// Base64 bytes of images at which a page ends: more than a frame holds, but little
/// enough that a page of a thousand entries is cheap.
const MAX_IMAGE_TEXT: usize = 16 << 20;

/// Maximum number of runs' lines and of rewinds in a page. Each run answers a message and
/// has two lines, so that only an externally edited log exceeds this.
const MAX_RUN_LINES: usize = 4096;

/// Reads up to `limit` entries of `floor..end`, oldest first, and more if a step's results
/// would lack their calls.
pub(crate) fn page(
    file: &dyn LogFile,
    path: &Path,
    floor: u64,
    end: u64,
    limit: usize,
    is_newest: bool,
) -> Result<Page, Error> {
    let io = |e| unreadable("read", path, e);
    let mut entries: Vec<LogEntry> = Vec::new();
    let (mut runs, mut behind) = (Vec::new(), 0);
    let (mut rewinds, mut rewinds_behind) = (Vec::new(), 0);
    let mut more = false;
    let mut images = 0;
    let mut steering = Steering::default();
    if !is_newest {
        steering.compacted();
    }
    let mut lines = Backward::new(file, floor, end);
    while let Some((offset, bytes)) = lines.prev().map_err(io)? {
        let entry = match line::parse(bytes) {
            Ok(Line::Message(message)) => LogEntry {
                index: offset,
                message: *message,
                compact: false,
            },
            Ok(Line::Marker(marker)) => {
                steering.compacted();
                rewinds.extend(marker.reopen.map(|to| (offset, to)));
                LogEntry {
                    index: offset,
                    message: marker.into_message(),
                    compact: true,
                }
            }
            Ok(Line::Rewind(to, _)) => {
                steering.compacted();
                if rewinds.len() < MAX_RUN_LINES {
                    rewinds.push((offset, to));
                }
                continue;
            }
            Ok(Line::Meta(meta, _)) => {
                steering.state(offset, &meta);
                continue;
            }
            Ok(Line::Run(run, _)) => {
                steering.run(&run);
                if runs.len() < MAX_RUN_LINES {
                    runs.push((offset, *run));
                }
                continue;
            }
            Ok(Line::ForeignRole | Line::Unknown) => continue,
            // The line is being appended, torn, or broken. Opening the conversation
            // reports a broken line.
            Err(_) => continue,
        };
        if entry.message.role == Role::User && !entry.compact {
            steering.said();
        }
        if is_full(&entries, limit, images) {
            more = true;
            break;
        }
        let shown = entry.message.images.iter();
        images += shown.map(|image| image.base64().len()).sum::<usize>();
        entries.push(entry);
        (behind, rewinds_behind) = (runs.len(), rewinds.len());
    }
    if more {
        // The older page contains the lines before its last entry.
        runs.truncate(behind);
        rewinds.truncate(rewinds_behind);
    }
    entries.reverse();
    runs.reverse();
    rewinds.reverse();
    order_results(&mut entries);
    let waiting = steering.waiting().into_iter();
    Ok(Page {
        entries,
        runs,
        rewinds,
        waiting: waiting.map(|(index, steer)| waits(index, steer)).collect(),
        more,
    })
}

/// Converts a steering message that is not in the history yet.
fn waits(index: u64, steer: String) -> LogEntry {
    LogEntry {
        index,
        message: Message::user(steer),
        compact: false,
    }
}

/// The entry of a line, if it has one.
pub(crate) fn entry_of(index: u64, line: &[u8]) -> Option<LogEntry> {
    let (message, compact) = match line::parse(line).ok()? {
        Line::Message(message) => (*message, false),
        Line::Marker(marker) => (marker.into_message(), true),
        Line::Rewind(..) | Line::Meta(..) | Line::Run(..) => return None,
        Line::ForeignRole | Line::Unknown => return None,
    };
    Some(LogEntry {
        index,
        message,
        compact,
    })
}

/// Whether a page, newest entry first, may begin with its last entry.
fn is_full(entries: &[LogEntry], limit: usize, images: usize) -> bool {
    let in_group = entries
        .last()
        .is_some_and(|first| first.message.role == Role::Tool);
    (entries.len() >= limit || images > MAX_IMAGE_TEXT) && !in_group
}
