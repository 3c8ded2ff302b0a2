//! Builds a conversation's working state from the tail of its log (STORE-3).
//!
//! Invariant: before the last marker only line 1, the state next to the marker and the
//! messages of the working history are read: the kept tail, and those at the place to
//! which a marker points. A marker without state, which older versions left after a
//! crash, requires a search of the archive.

use crate::encode;
use crate::error::unreadable;
use crate::fs::LogFile;
use crate::line::{self, Head, Line, Marker, Stamp};
use crate::repair::Tail;
use crate::tail::{Backward, HeadRead, line_at, read_head, written};
use crate::working::Working;
use crabtalk_domain::storage::{
    Error, Meta, MetaRecord, NewConversation, RunPhase, RunRecord, Steering,
};
use crabtalk_domain::{ContextUse, Message, Role};
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// Number of request ids to remember (CONV-9).
const REQUESTS_KEPT: usize = 256;

/// Size up to which an archive's messages are counted if its marker has no count. For a
/// larger one the count is unknown, since opening must not read a long archive.
const COUNTED_AT_LOAD: u64 = 1024 * 1024;

/// Result of loading a log.
pub(crate) struct Loaded {
    pub(crate) head: Head,
    pub(crate) meta: Meta,
    pub(crate) history: Vec<Message>,
    /// Whether the history begins with a marker's summary.
    pub(crate) has_summary: bool,
    /// Number of kept messages behind the summary.
    pub(crate) kept: usize,
    /// Number of messages before the working history; `None` if an old marker has no count.
    pub(crate) archived: Option<u64>,
    /// Offset of the last marker that ends an archive, 0 if there is none; unknown after an
    /// external edit.
    pub(crate) marker: Option<u64>,
    /// Number of messages in the file.
    pub(crate) messages: Option<u64>,
    pub(crate) last_run: u64,
    pub(crate) open_run: Option<RunRecord>,
    pub(crate) requests: Vec<(String, u64)>,
    pub(crate) last_end: Option<RunRecord>,
    /// Ids of calls that wait for an approval.
    pub(crate) waiting: Vec<String>,
    /// Steering messages that no step has consumed.
    pub(crate) steers: Vec<String>,
    /// End of the valid lines.
    pub(crate) end: u64,
    /// State of the bytes after the valid lines.
    pub(crate) tail: Tail,
    /// Whether the newline of the last valid line is missing.
    pub(crate) unterminated: bool,
}

/// Reads a log. `None` if its creation was interrupted within line 1.
pub(crate) fn load(file: &dyn LogFile, path: &Path) -> Result<Option<Loaded>, Error> {
    let io = |e| unreadable("read", path, e);
    let len = file.stat().map_err(io)?.len;
    let (head, floor, terminated) = match read_head(file).map_err(io)? {
        HeadRead::Good {
            head,
            end,
            terminated,
        } => (head, end, terminated),
        HeadRead::Torn => return Ok(None),
        HeadRead::Broken(reason) => {
            return Err(Error::Broken {
                log: path.display().to_string(),
                line: 1,
                reason,
            });
        }
    };
    let mut end = written(file, floor, len).map_err(io)?;
    let mut tail = if end < len { Tail::Torn } else { Tail::Clean };
    loop {
        let mut reading = Reading::default();
        match reading.read(file, floor, end, tail).map_err(io)? {
            Stop::Done { terminated: last } => {
                reading.tell_broken(path);
                let loaded = reading.finish(file, head, floor, end).map_err(io)?;
                return Ok(Some(Loaded {
                    tail,
                    unterminated: !(terminated && last),
                    ..loaded
                }));
            }
            Stop::Torn(at) => {
                end = at;
                tail = Tail::Torn;
            }
        }
    }
}

enum Stop {
    Done {
        terminated: bool,
    },
    /// The last append is incomplete, so that nothing of it was acknowledged.
    Torn(u64),
}

/// State that is read backwards, so that the first value found is the newest.
#[derive(Default)]
struct Reading {
    working: Working,
    title: Option<String>,
    /// The folder, and whether it was set for this conversation.
    cwd: Option<(String, bool)>,
    uptime_secs: Option<u64>,
    context: Option<ContextUse>,
    last_run: u64,
    closed: HashSet<u64>,
    open_run: Option<RunRecord>,
    last_end: Option<RunRecord>,
    /// Request ids, newest first.
    requests: Vec<(String, u64)>,
    requests_known: bool,
    waiting: Option<Vec<String>>,
    steering: Steering,
    passed_another: bool,
    foreign: u64,
    /// Number of unreadable lines, and position and fault of the first.
    broken: u64,
    first_broken: Option<(u64, String)>,
}

impl Reading {
    fn read(&mut self, file: &dyn LogFile, floor: u64, end: u64, behind: Tail) -> io::Result<Stop> {
        let mut lines = Backward::new(file, floor, end);
        let (mut last, mut terminated) = (true, true);
        loop {
            if self.is_state_known()
                && let Some(to) = self.jump()
            {
                lines = Backward::new(file, floor, to);
            }
            let Some((offset, bytes)) = lines.prev()? else {
                let Some(to) = self.jump() else { break };
                lines = Backward::new(file, floor, to);
                continue;
            };
            let ends_at = offset + bytes.len() as u64;
            let whole = ends_at < end;
            if line::is_blank(bytes) {
                if !whole && !bytes.is_empty() {
                    return Ok(Stop::Torn(offset));
                }
                continue;
            }
            match line::parse(bytes) {
                Ok(line) => {
                    if !whole {
                        terminated = false;
                        // A number without a delimiter may be incomplete.
                        if !matches!(bytes.trim_ascii_end(), [.., b'}']) {
                            return Ok(Stop::Torn(offset));
                        }
                    }
                    if last && line.is_run_without_message() {
                        return Ok(Stop::Torn(offset));
                    }
                    let line = self.checked(file, floor, offset, line)?;
                    self.take(offset, line);
                }
                // Only one line may be torn; all others were once complete.
                Err(_) if !whole || (last && behind != Tail::Torn) => {
                    return Ok(Stop::Torn(offset));
                }
                // A broken line does not affect other lines.
                Err(reason) => {
                    self.broken += 1;
                    self.first_broken = Some((offset, reason));
                }
            }
            last = false;
            if self.is_complete() {
                break;
            }
        }
        Ok(Stop::Done { terminated })
    }

    /// Logs the skipped lines.
    fn tell_broken(&self, path: &Path) {
        if let Some((at, reason)) = &self.first_broken {
            tracing::warn!(
                log = %path.display(),
                lines = self.broken,
                first_at_byte = at,
                reason,
                "skipped unreadable lines; the log still contains them"
            );
        }
    }

    /// Ignores a marker with an invalid target, which an external edit may have caused.
    fn checked(
        &mut self,
        file: &dyn LogFile,
        floor: u64,
        offset: u64,
        line: Line,
    ) -> io::Result<Line> {
        let Some(to) = line.points_back() else {
            return Ok(line);
        };
        let is_place = (floor..offset).contains(&to);
        let target = if is_place {
            line_at(file, to, offset)?
        } else {
            None
        };
        if target.is_some_and(|bytes| line::kind(&bytes) != line::Kind::Other) {
            return Ok(line);
        }
        self.broken += 1;
        let reason = format!("the line points to offset {to}, where no message line begins");
        self.first_broken = Some((offset, reason));
        Ok(match line {
            // The history begins here, and can be reopened again.
            Line::Marker(marker) => Line::Marker(Marker {
                reopen: None,
                ..marker
            }),
            Line::Rewind(..) | Line::Message(_) | Line::Meta(..) => Line::Unknown,
            Line::Run(..) | Line::ForeignRole | Line::Unknown => Line::Unknown,
        })
    }

    /// Whether earlier lines cannot change the result.
    fn is_complete(&self) -> bool {
        // A crash may have come between a marker and the state after it. No later change
        // repeats the requests of that state.
        self.is_state_known() && self.working.is_complete()
    }

    fn is_state_known(&self) -> bool {
        let last = self.working.last.as_ref();
        last.is_some_and(|last| !self.wants_state() || last.stamp.prev.is_none())
    }

    /// Whether a line before the marker may contain missing state.
    fn wants_state(&self) -> bool {
        !self.requests_known && !self.passed_another
    }

    /// The place to which a marker points; earlier lines contain no state.
    fn jump(&mut self) -> Option<u64> {
        let to = self.working.jump()?;
        self.passed_another = true;
        self.steering.compacted();
        Some(to)
    }

    fn take(&mut self, offset: u64, line: Line) {
        self.steer(offset, &line);
        let wants_state = self.working.last.is_none() || self.wants_state();
        match line {
            Line::Message(message) => self.working.message(*message),
            Line::Marker(marker) => {
                self.passed_another |= !self.working.archive(offset, marker);
            }
            Line::Rewind(to, stamp) => {
                self.passed_another |= !self.working.rewind(offset, to, stamp);
            }
            Line::Meta(meta, _) if wants_state => self.take_meta(*meta),
            Line::Run(run, _) if wants_state => self.take_run(*run),
            Line::ForeignRole => self.foreign += 1,
            Line::Meta(..) | Line::Run(..) | Line::Unknown => {}
        }
    }

    /// Collects steering messages. A marker ends the search, unless a crash came between it
    /// and the state after it.
    fn steer(&mut self, offset: u64, line: &Line) {
        match line {
            Line::Message(message) if message.role == Role::User => self.steering.said(),
            Line::Meta(meta, _) => self.steering.state(offset, meta),
            Line::Run(run, _) => self.steering.run(run),
            Line::Marker(_) | Line::Rewind(..) if !self.wants_state() => {
                self.steering.compacted();
            }
            Line::Message(_) | Line::Marker(_) | Line::Rewind(..) => {}
            Line::ForeignRole | Line::Unknown => {}
        }
    }

    fn take_meta(&mut self, meta: MetaRecord) {
        self.title = self.title.take().or(meta.title);
        let is_own = meta.own_cwd.unwrap_or(false);
        let cwd = meta.cwd.map(|cwd| (cwd, is_own));
        self.cwd = self.cwd.take().or(cwd);
        self.uptime_secs = self.uptime_secs.or(meta.uptime_secs);
        // A context size from before a compaction is outdated.
        self.context = self
            .context
            .or(meta.context.filter(|_| self.working.last.is_none()));
        self.last_run = self.last_run.max(meta.last_run.unwrap_or(0));
        self.waiting = self.waiting.take().or(meta.waiting);
        if let Some(run) = meta.open_run {
            self.open(run);
        }
        if let Some(requests) = meta.requests.filter(|_| !self.requests_known) {
            self.requests.extend(requests.into_iter().rev());
            self.requests_known = true;
        }
    }

    fn take_run(&mut self, run: RunRecord) {
        self.last_run = self.last_run.max(run.id);
        match run.phase {
            RunPhase::Start => {
                if !run.request_id.is_empty() && !self.requests_known {
                    self.requests.push((run.request_id.clone(), run.id));
                }
                self.open(run);
            }
            RunPhase::End | RunPhase::Interrupted => {
                self.closed.insert(run.id);
                self.last_end.get_or_insert(run);
            }
        }
    }

    fn open(&mut self, run: RunRecord) {
        if !self.closed.contains(&run.id) {
            self.open_run.get_or_insert(run);
        }
    }

    fn finish(
        mut self,
        file: &dyn LogFile,
        head: Head,
        floor: u64,
        end: u64,
    ) -> io::Result<Loaded> {
        if self.foreign > 0 {
            tracing::warn!(
                agent = head.agent,
                sender = head.created_by,
                messages = self.foreign,
                "skipped messages with an unknown role"
            );
        }
        let mut messages = Some(0);
        let mut marker = Some(0);
        if let Some(last) = &self.working.last {
            let offset = last.offset;
            let before = match last.stamp.messages {
                None if offset <= COUNTED_AT_LOAD => Some(count(file, floor, offset)?),
                messages => messages,
            };
            messages = before.map(|n| n + last.behind as u64);
            marker = last.archive;
        }
        let is_marked = self.working.last.is_some();
        let (history, has_summary, kept) = self.working.finish();
        let in_history = (history.len() - usize::from(has_summary)) as u64;
        if !is_marked {
            messages = Some(in_history);
        }
        let archived = messages.map(|n| n.saturating_sub(in_history));
        let (cwd, own_cwd) = self.cwd.unwrap_or_default();
        let mut seen = HashSet::new();
        self.requests.retain(|(id, _)| seen.insert(id.clone()));
        self.requests.truncate(REQUESTS_KEPT);
        self.requests.reverse();
        Ok(Loaded {
            meta: Meta {
                title: self.title.unwrap_or_else(|| head.title.clone()),
                cwd,
                own_cwd,
                uptime_secs: self.uptime_secs.unwrap_or(head.uptime_secs),
                context: self.context,
                created_at: head.created_at.clone(),
            },
            head,
            history,
            has_summary,
            kept,
            archived,
            marker,
            messages,
            last_run: self.last_run,
            open_run: self.open_run,
            requests: self.requests,
            last_end: self.last_end,
            waiting: self.waiting.unwrap_or_default(),
            steers: self
                .steering
                .waiting()
                .into_iter()
                .map(|(_, it)| it)
                .collect(),
            end,
            tail: Tail::Clean,
            unterminated: false,
        })
    }
}

/// Number of messages in a part of a file, without unreadable lines.
fn count(file: &dyn LogFile, floor: u64, end: u64) -> io::Result<u64> {
    let mut lines = Backward::new(file, floor, end);
    let mut messages = 0;
    while let Some((_, bytes)) = lines.prev()? {
        messages += u64::from(line::kind(bytes) == line::Kind::Message);
    }
    Ok(messages)
}

/// Appends the state that line 1 of a new log cannot contain.
pub(crate) fn first_state(out: &mut Vec<u8>, new: &NewConversation) {
    if !new.cwd.is_empty() {
        let meta = Meta {
            cwd: new.cwd.clone(),
            ..Meta::default()
        };
        let stamp = Stamp {
            prev: Some(0),
            messages: Some(0),
        };
        encode::meta(out, &meta, &MetaRecord::default(), stamp);
    }
}
