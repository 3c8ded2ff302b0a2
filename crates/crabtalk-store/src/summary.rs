//! Reads the list item of a log from line 1 and its last lines.

use crate::archive::scan;
use crate::fs::{LogFile, Stat};
use crate::line::{self, Kind, Line};
use crate::tail::{Backward, HeadRead, read_head};
use crabtalk_domain::storage::{Meta, RunPhase, RunRecord};
use crabtalk_domain::{ContextUse, ConversationKey};
use std::io;
use std::time::SystemTime;

#[derive(Debug, Clone)]
pub(crate) struct Digest {
    pub(crate) key: ConversationKey,
    pub(crate) meta: Meta,
    pub(crate) messages: u64,
    /// Whether the last run has not ended.
    pub(crate) is_open: bool,
    /// The end of the last run, unless it succeeded.
    pub(crate) failed: Option<RunRecord>,
    /// Time of the last write.
    pub(crate) modified: SystemTime,
}

/// Why a log has no digest.
#[derive(Debug)]
pub(crate) enum Unlisted {
    /// The creation was interrupted.
    Torn,
    /// Line 1 is not valid metadata.
    Broken(String),
    Io(io::Error),
}

impl From<io::Error> for Unlisted {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads the digest of a log.
pub(crate) fn digest(file: &dyn LogFile) -> Result<Digest, Unlisted> {
    let (head, floor) = match read_head(file)? {
        HeadRead::Good { head, end, .. } => (head, end),
        HeadRead::Torn => return Err(Unlisted::Torn),
        HeadRead::Broken(reason) => return Err(Unlisted::Broken(reason)),
    };
    let Some(key) = head.key() else {
        return Err(Unlisted::Broken("line 1 has no agent or no sender".into()));
    };
    let Stat { len, modified, .. } = file.stat()?;
    let state = last_state(file, floor, len)?;
    let (cwd, own_cwd) = state.cwd.unwrap_or_default();
    let meta = Meta {
        created_at: head.created_at,
        title: state.title.unwrap_or(head.title),
        cwd,
        own_cwd,
        uptime_secs: state.uptime_secs.unwrap_or(head.uptime_secs),
        context: state.context,
    };
    Ok(Digest {
        key,
        meta,
        messages: state.before.unwrap_or(0) + state.behind,
        is_open: state.is_open.unwrap_or(false),
        failed: state.failed,
        modified,
    })
}

/// State that is read backwards.
#[derive(Default)]
struct LastState {
    title: Option<String>,
    /// The folder, and whether it was set for this conversation.
    cwd: Option<(String, bool)>,
    uptime_secs: Option<u64>,
    context: Option<ContextUse>,
    /// Number of messages before the last line with a count.
    before: Option<u64>,
    /// Number of messages after that line.
    behind: u64,
    /// Whether the last run has not ended, if known.
    is_open: Option<bool>,
    /// The end of the last run unless it succeeded, if known.
    failed: Option<RunRecord>,
}

impl LastState {
    fn is_complete(&self) -> bool {
        let known = self.title.is_some() && self.cwd.is_some() && self.uptime_secs.is_some();
        known && self.before.is_some() && self.is_open.is_some()
    }
}

/// Reads the state from the last lines.
fn last_state(file: &dyn LogFile, floor: u64, len: u64) -> io::Result<LastState> {
    let (mut state, mut passed_one) = (LastState::default(), false);
    let mut lines = Backward::new(file, floor, len);
    while !state.is_complete() {
        let Some((offset, bytes)) = lines.prev()? else {
            break;
        };
        if line::kind(bytes) == Kind::Message {
            state.behind += u64::from(state.before.is_none());
            continue;
        }
        match line::parse(bytes) {
            Ok(Line::Marker(marker)) => {
                if state.before.is_none() {
                    state.before = match marker.stamp.messages {
                        Some(messages) => Some(messages),
                        None => Some(scan(file, floor, offset)?.messages),
                    };
                }
                // Old markers have no state after them, and a crash may have come between a
                // marker and its state.
                if state.title.is_some() || passed_one || marker.stamp.prev.is_none() {
                    break;
                }
                passed_one = true;
            }
            Ok(Line::Meta(meta, stamp)) => {
                if meta.last_run.is_some() {
                    state.is_open = state.is_open.or(Some(meta.open_run.is_some()));
                }
                state.title = state.title.or(meta.title);
                let is_own = meta.own_cwd.unwrap_or(false);
                state.cwd = state.cwd.or(meta.cwd.map(|cwd| (cwd, is_own)));
                state.uptime_secs = state.uptime_secs.or(meta.uptime_secs);
                // A context size from before a compaction is outdated.
                state.context = state.context.or(meta.context.filter(|_| !passed_one));
                state.before = state.before.or(stamp.messages);
            }
            Ok(Line::Rewind(_, stamp)) => state.before = state.before.or(stamp.messages),
            Ok(Line::Run(run, stamp)) => {
                if state.is_open.is_none() {
                    state.is_open = Some(run.phase == RunPhase::Start);
                    state.failed = run.is_failure().then_some(*run);
                }
                state.before = state.before.or(stamp.messages);
            }
            Ok(Line::Message(_) | Line::ForeignRole | Line::Unknown) | Err(_) => {}
        }
    }
    Ok(state)
}
