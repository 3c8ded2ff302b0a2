//! Shows and undoes the changes of a run.
//!
//! Invariants: a run is undone completely, or partly if the user allows it; a file
//! that changed after the run stays and is named; an undo is recorded before
//! it begins, and can be repeated after an interruption.

use super::found::{self, Keep, OpenPath, PathState, look};
use super::journal::{self, Journal, Line, Net, sum};
use super::{Changes, Inner};
use crate::files::{Closed, Intent};
use crabtalk_domain::ConversationKey;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use tokio::runtime::Handle;

/// Maximum bytes of a shown difference; of a longer one only the lines are counted.
const MAX_DIFF_BYTES: usize = 256 << 10;

/// Maximum bytes of all differences in an answer.
const MAX_DIFFS_BYTES: usize = 2 << 20;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The file did not exist before.
    Created,
    /// The file existed before and still exists.
    Changed,
    /// The file no longer exists.
    Removed,
}

impl Kind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A file that a run changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path of the file.
    pub path: PathBuf,
    /// The kind of the change.
    pub kind: Kind,
    /// The difference as text; empty if it was not requested.
    pub diff: String,
    /// The reason why the change cannot be undone; empty if it can.
    pub problem: String,
}

/// The changes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunChanges {
    /// The run's number.
    pub run: u64,
    /// The changed files, by path.
    pub files: Vec<FileChange>,
    /// Changes that were not recorded, in sentences.
    pub notes: Vec<String>,
    /// Whether the run was undone.
    pub undone: bool,
}

/// The outcome of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The run with its files; those with a problem were not changed.
    pub changes: RunChanges,
    /// Whether anything was changed.
    pub done: bool,
}

/// The reason why nothing was undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoRefused {
    /// The conversation has no such run.
    #[error("run {0} has no recorded file changes")]
    NoRun(u64),
    /// No run changed anything.
    #[error("no run of this conversation has file changes that can be reverted")]
    Nothing,
    /// The records cannot be read.
    #[error("{0}")]
    Failed(String),
}

impl Changes {
    /// The changes of one run, or of the last `most` runs, newest first.
    /// Blocks.
    pub(crate) fn list(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
        most: usize,
        diffs: bool,
    ) -> Result<Vec<RunChanges>, UndoRefused> {
        let inner = &*self.0;
        let mut room = if diffs { MAX_DIFFS_BYTES } else { 0 };
        let mut listed = Vec::new();
        for number in inner.runs(key)? {
            if listed.len() >= most || run.is_some_and(|run| run != number) {
                continue;
            }
            let journal = inner.journal(&(key.clone(), number));
            if !journal.folder().is_dir() {
                continue;
            }
            let summed = sum(&journal.read().map_err(UndoRefused::Failed)?);
            if run.is_none() && summed.files.is_empty() && summed.notes.is_empty() {
                continue;
            }
            let files = summed.files.iter().map(|net| {
                let diff = match room {
                    0 => String::new(),
                    _ => shown(net, &journal, &mut room),
                };
                let plan = inner.plan(net);
                report(net, diff, plan.err().unwrap_or_default())
            });
            listed.push(RunChanges {
                run: number,
                files: files.collect(),
                notes: summed.notes,
                undone: summed.undone,
            });
        }
        match (run, listed.is_empty()) {
            (Some(run), true) => Err(UndoRefused::NoRun(run)),
            _ => Ok(listed),
        }
    }

    /// Undoes one run, or the last run with changes, taking the lock of each file.
    /// Blocks.
    pub(crate) fn undo<G>(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
        how: How,
        lock: impl Fn(&Path) -> G,
    ) -> Result<Undone, UndoRefused> {
        let inner = &*self.0;
        // The mutex guards no data.
        let _one_at_a_time = inner.undoing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = inner.changed_by(key, run)?;
        let Some((number, journal, summed)) = found else {
            return Err(run.map_or(UndoRefused::Nothing, UndoRefused::NoRun));
        };
        let plans: Vec<Result<Step, String>> =
            summed.files.iter().map(|net| inner.plan(net)).collect();
        let refused = plans.iter().any(Result::is_err);
        let possible = plans.iter().any(Result::is_ok);
        let may = how.do_it && possible && (!refused || how.partly);
        let (mut done, mut files) = (Vec::new(), Vec::new());
        if may {
            journal
                .write(&[Line::Undoing])
                .map_err(UndoRefused::Failed)?;
        }
        // Created files are removed first, so that they block no other path.
        let mut order: Vec<(usize, &Net)> = summed.files.iter().enumerate().collect();
        order.sort_by_key(|(_, net)| net.before != PathState::Nothing);
        for (at, net) in order {
            let plan = plans[at].clone();
            let came = match (plan, may) {
                (Ok(step), true) => {
                    let _no_tool_meanwhile = lock(&net.path);
                    if let Ok(Some(place)) = OpenPath::reach(&net.path, false) {
                        place.sweep();
                    }
                    take_back(net, step, &journal)
                }
                (plan, _) => plan.map(drop),
            };
            if may && came.is_ok() {
                done.push(net.path.clone());
            }
            files.push(report(net, String::new(), came.err().unwrap_or_default()));
        }
        if may {
            let line = Line::Undone { paths: done };
            journal.write(&[line]).map_err(UndoRefused::Failed)?;
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let undone = may && files.iter().all(|file| file.problem.is_empty());
        Ok(Undone {
            changes: RunChanges {
                run: number,
                files,
                notes: summed.notes,
                undone,
            },
            done: may,
        })
    }
}

impl Inner {
    /// The changes of one run, or of the last run with changes.
    fn changed_by(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
    ) -> Result<Option<(u64, Journal, journal::Changes)>, UndoRefused> {
        let numbers = match run {
            Some(run) => vec![run],
            None => self.runs(key)?,
        };
        for number in numbers {
            let journal = self.journal(&(key.clone(), number));
            let summed = journal.read().map(|lines| sum(&lines));
            let summed = summed.map_err(UndoRefused::Failed)?;
            if !summed.files.is_empty() {
                return Ok(Some((number, journal, summed)));
            }
        }
        Ok(None)
    }
}

impl From<String> for UndoRefused {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// The extent of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct How {
    /// Whether to undo, or only to report.
    pub(crate) do_it: bool,
    /// Whether to undo the other files if some files cannot be undone.
    pub(crate) partly: bool,
}

/// The step of an undo for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    PutBack,
    /// The file already has its first state.
    Nothing,
}

impl Inner {
    /// Numbers of the runs with changes, newest first.
    fn runs(&self, key: &ConversationKey) -> Result<Vec<u64>, String> {
        let runs = Handle::current().block_on(self.port.runs(key));
        runs.map_err(|e| e.to_string())
    }

    /// The step for a file in its present state.
    fn plan(&self, net: &Net) -> Result<Step, String> {
        let closed = Closed {
            home: &self.home,
            readable: &[],
            writable: &[],
        };
        closed
            .check(&net.path, Intent::Change)
            .map_err(|e| e.to_string())?;
        let now = look(&net.path, &mut Keep::Nowhere)?;
        if now.is(&net.before) {
            return Ok(Step::Nothing);
        }
        if !net.doubt.is_empty() {
            return Err(net.doubt.clone());
        }
        if let Some(why) = net.before.lost() {
            return Err(format!("its earlier content is not kept: {why}"));
        }
        if !now.is(&net.after) {
            return Err(match now {
                PathState::Nothing => "it was removed since".to_owned(),
                PathState::File { .. } | PathState::Link { .. } | PathState::Unkept { .. } => {
                    "it was changed since".to_owned()
                }
            });
        }
        Ok(Step::PutBack)
    }
}

/// Restores a file to its state before the run.
fn take_back(net: &Net, step: Step, journal: &Journal) -> Result<(), String> {
    if step == Step::Nothing {
        return Ok(());
    }
    let content = match &net.before {
        PathState::File { sha256, .. } => kept(journal, sha256)?,
        PathState::Nothing | PathState::Link { .. } | PathState::Unkept { .. } => Vec::new(),
    };
    let make = net.before != PathState::Nothing;
    let Some(place) = OpenPath::reach(&net.path, make)? else {
        return Err("a folder above it is gone".to_owned());
    };
    // A folder that the run left here may be empty and removed by now.
    let is_gone = place.look(&mut Keep::Nowhere)? == PathState::Nothing;
    let now = match is_gone && net.after.lost().is_some() {
        true => PathState::Nothing,
        false => net.after.clone(),
    };
    place.put(&net.before, &content, &now)?;
    if net.before == PathState::Nothing {
        // Removes the folders that the tool created or, for a command, all empty ones.
        let top = match &net.top {
            Some(top) => Some(top.as_path()),
            None => net.folders.iter().map(PathBuf::as_path).min(),
        };
        let top = match net.top {
            Some(_) => top,
            None => top.and_then(Path::parent),
        };
        if let Some(top) = top {
            found::tidy(&net.path, top);
        }
    }
    Ok(())
}

fn kept(journal: &Journal, sha256: &str) -> Result<Vec<u8>, String> {
    let path = journal.objects().join(sha256);
    let bytes = crabtalk_files::read(&path, found::MAX_FILE_BYTES)
        .map_err(|e| format!("its earlier content cannot be read: {e}"))?;
    match found::sha256(&bytes) == sha256 {
        true => Ok(bytes),
        false => Err("its earlier content is damaged".to_owned()),
    }
}

fn report(net: &Net, diff: String, problem: String) -> FileChange {
    let kind = match (&net.before, &net.after) {
        (PathState::Nothing, _) => Kind::Created,
        (_, PathState::Nothing) => Kind::Removed,
        (
            PathState::File { .. } | PathState::Link { .. } | PathState::Unkept { .. },
            PathState::File { .. } | PathState::Link { .. } | PathState::Unkept { .. },
        ) => Kind::Changed,
    };
    FileChange {
        path: net.path.clone(),
        kind,
        diff,
        problem,
    }
}

/// Describes the difference, or shows it as lines.
fn shown(net: &Net, journal: &Journal, room: &mut usize) -> String {
    let mut said = Vec::new();
    let text = |found: &PathState| match found {
        PathState::Nothing => Some(String::new()),
        PathState::File { sha256, .. } => String::from_utf8(kept(journal, sha256).ok()?)
            .ok()
            .filter(|text| !text.contains('\0')),
        PathState::Link { .. } | PathState::Unkept { .. } => None,
    };
    if let (
        PathState::File {
            mode: old, exact, ..
        },
        PathState::File { mode: new, .. },
    ) = (&net.before, &net.after)
        && (found::is_program(*old) != found::is_program(*new) || *exact && old != new)
    {
        said.push(format!("mode {old:o} becomes {new:o}"));
    }
    match (text(&net.before), text(&net.after)) {
        (Some(before), Some(after)) => {
            if before != after {
                said.push(crate::files::unified_diff(&before, &after));
            }
        }
        _ => said.push(format!(
            "{} becomes {}",
            word(&net.before),
            word(&net.after)
        )),
    }
    let said = said.join("\n");
    if said.len() > MAX_DIFF_BYTES.min(*room) {
        return format!("{} lines, too many to be shown", said.lines().count());
    }
    *room = room.saturating_sub(said.len()).max(1);
    said
}

fn word(found: &PathState) -> String {
    match found {
        PathState::Nothing => "nothing".to_owned(),
        PathState::File { size, .. } => format!("{size} bytes"),
        PathState::Link { target } => {
            format!("a link to {target}")
        }
        PathState::Unkept { .. } => "content that was not kept".to_owned(),
    }
}
