//! Descriptions of unreadable conversation logs.

use super::Context;
use crate::error::Error;
use crate::text::summary;
use crabtalk_proto::{BrokenLog, CheckConversationsMsg};

/// Maximum number of files reported below a list; `doctor` reports all of them.
const MAX_TOLD: usize = 5;

/// Whether a file is named like a log, so that a conversation is missing.
pub(super) fn is_named_as_log(log: &BrokenLog) -> bool {
    log.file.contains(".jsonl")
}

/// Describes a file, its error, and the part that can still be read.
pub(super) fn said(log: &BrokenLog, in_trash: bool) -> String {
    let folder = if in_trash {
        "sessions/trash"
    } else {
        "sessions"
    };
    let (file, reason) = (summary(&log.file), summary(&log.reason));
    let lines = match log.lines {
        0 => return format!("{folder}/{file}: {reason}; not listed"),
        1 => "skipped an unreadable line at".to_owned(),
        lines => format!("skipped {lines} unreadable lines, the first at"),
    };
    let readable = match log.messages {
        1 => "1 message can".to_owned(),
        messages => format!("{messages} messages can"),
    };
    format!(
        "{folder}/{file} ({} for {}): {lines} byte {}: {reason}; {readable} be read",
        summary(&log.agent),
        summary(&log.sender),
        log.first_at,
    )
}

/// Reports below a list the files that it omits. Only for a local daemon, since users of a
/// remote one cannot repair its files.
pub(super) async fn tell_left_out(context: &mut Context, trash: bool) -> Result<(), Error> {
    if !context.known_client().endpoint().is_local() {
        return Ok(());
    }
    let lines = false;
    // A failed check does not block the list.
    let Ok(list) = context.call(CheckConversationsMsg { trash, lines }).await else {
        return Ok(());
    };
    for log in list.logs.iter().take(MAX_TOLD) {
        context.note(&format!("crabtalk: {}", said(log, trash)))?;
    }
    if list.logs.len() > MAX_TOLD {
        context.note("crabtalk: `crabtalk doctor` lists more")?;
    }
    Ok(())
}
