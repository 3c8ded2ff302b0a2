//! The journal of the file changes of a run, and their sum.
//!
//! Contents are stored next to it, in `state/changes/CONVERSATION/RUN/objects/SHA256`.
//! Invariants: a change is noted before it is made; entries are never modified;
//! entries without a folder belong to a removed conversation and are dropped.

use super::found::PathState;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::ChangeJournal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The journal of a run. Its methods block and must run on the runtime's blocking
/// pool.
#[derive(Clone)]
pub(super) struct Journal {
    port: Arc<dyn ChangeJournal>,
    run: (ConversationKey, u64),
    folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(super) enum Line {
    /// A tool is about to change a file.
    Will {
        id: u64,
        path: PathBuf,
        before: PathState,
        /// Missing folders that the tool will create.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<PathBuf>,
    },
    Did {
        id: u64,
        after: PathState,
    },
    Not {
        id: u64,
    },
    /// A command is about to run in a work tree.
    Began {
        id: u64,
        what: String,
        top: PathBuf,
    },
    Changed {
        id: u64,
        path: PathBuf,
        before: PathState,
        after: PathState,
        top: PathBuf,
        /// The reason why another run may have made the change.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        doubt: String,
    },
    Ended {
        id: u64,
    },
    /// A message for the user.
    Note {
        text: String,
    },
    /// The run's changes are being undone.
    Undoing,
    Undone {
        paths: Vec<PathBuf>,
    },
}

impl Journal {
    pub(super) fn new(
        port: Arc<dyn ChangeJournal>,
        run: (ConversationKey, u64),
        folder: PathBuf,
    ) -> Self {
        Self { port, run, folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    pub(super) fn write(&self, lines: &[Line]) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| {
            format!("cannot note changes in {}: {e}", self.folder.display())
        };
        let entries: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
        let entries = entries.map_err(|e| failed(&e))?;
        if !self.folder.is_dir() {
            // The entries belong to a removed conversation of the same name.
            self.remove().map_err(|e| failed(&e))?;
            crabtalk_files::create_folder(&self.folder).map_err(|e| failed(&e))?;
        }
        let (key, run) = &self.run;
        let appended = Handle::current().block_on(self.port.append(key, *run, entries));
        appended.map_err(|e| failed(&e))
    }

    /// Reads the entries that this version understands.
    pub(super) fn read(&self) -> Result<Vec<Line>, String> {
        if !self.folder.is_dir() {
            return Ok(Vec::new());
        }
        let (key, run) = &self.run;
        let entries = Handle::current().block_on(self.port.entries(key, *run));
        let entries = entries.map_err(|e| e.to_string())?;
        let lines = entries.iter().map(|entry| serde_json::from_str(entry));
        Ok(lines.filter_map(Result::ok).collect())
    }

    /// Removes the entries.
    pub(super) fn remove(&self) -> Result<(), String> {
        let (key, run) = &self.run;
        let removed = Handle::current().block_on(self.port.remove(key, Some(*run)));
        removed.map_err(|e| e.to_string())
    }
}

/// All changes of a run to one file, from the first state to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Net {
    pub(super) path: PathBuf,
    pub(super) before: PathState,
    pub(super) after: PathState,
    /// Folders above the file that the run created.
    pub(super) folders: Vec<PathBuf>,
    /// The work tree in which a command changed it.
    pub(super) top: Option<PathBuf>,
    /// The reason why it cannot be undone, according to the journal.
    pub(super) doubt: String,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) files: Vec<Net>,
    pub(super) notes: Vec<String>,
    /// Whether all changes were undone.
    pub(super) undone: bool,
}

/// The sum of the entries.
pub(super) fn sum(lines: &[Line]) -> Changes {
    let mut sum = Sum::default();
    for line in lines {
        sum.take(line);
    }
    sum.changes()
}

/// The sum of the entries read so far.
#[derive(Default)]
struct Sum {
    files: BTreeMap<PathBuf, Net>,
    /// Announced changes without an outcome.
    open: BTreeMap<u64, (PathBuf, PathState, Vec<PathBuf>)>,
    /// Commands that have not ended, and their folders.
    commands: BTreeMap<u64, (String, PathBuf)>,
    notes: Vec<String>,
    undone: bool,
}

impl Sum {
    fn take(&mut self, line: &Line) {
        match line {
            Line::Will {
                id,
                path,
                before,
                folders,
            } => {
                let change = (path.clone(), before.clone(), folders.clone());
                self.open.insert(*id, change);
            }
            Line::Did { id, after } => {
                if let Some((path, before, folders)) = self.open.remove(id) {
                    let net = Net {
                        path,
                        before,
                        after: after.clone(),
                        folders,
                        top: None,
                        doubt: String::new(),
                    };
                    add(&mut self.files, net);
                }
            }
            Line::Not { id } => drop(self.open.remove(id)),
            Line::Began { id, what, top } => {
                let command = (what.clone(), top.clone());
                self.commands.insert(*id, command);
            }
            Line::Changed {
                path,
                before,
                after,
                top,
                doubt,
                ..
            } => {
                let net = Net {
                    path: path.clone(),
                    before: before.clone(),
                    after: after.clone(),
                    folders: Vec::new(),
                    top: Some(top.clone()),
                    doubt: doubt.clone(),
                };
                add(&mut self.files, net);
            }
            Line::Ended { id } => drop(self.commands.remove(id)),
            Line::Note { text } if self.notes.contains(text) => {}
            Line::Note { text } => self.notes.push(text.clone()),
            Line::Undoing => {}
            Line::Undone { paths } => {
                for path in paths {
                    self.files.remove(path);
                }
                self.undone = true;
            }
        }
    }

    /// Returns the sum, including interrupted changes.
    fn changes(mut self) -> Changes {
        for (path, before, folders) in self.open.into_values() {
            // The change was made completely or not at all.
            let cut = Net {
                path,
                after: PathState::Unkept {
                    why: String::new(),
                    stamp: "cut off".to_owned(),
                },
                before,
                folders,
                top: None,
                doubt: "the call was interrupted, so that its outcome is not known".to_owned(),
            };
            add(&mut self.files, cut);
        }
        let commands = self.commands.into_values();
        self.notes.extend(commands.map(|(what, top)| {
            format!(
                "the command `{what}` still runs or was interrupted; its changes in {} are not recorded",
                top.display()
            )
        }));
        let mut files: Vec<Net> = self.files.into_values().collect();
        files.retain(|net| !net.before.is(&net.after));
        Changes {
            undone: self.undone && files.is_empty(),
            files,
            notes: self.notes,
        }
    }
}

/// Adds a change to the earlier changes of the same file.
fn add(files: &mut BTreeMap<PathBuf, Net>, net: Net) {
    let Some(known) = files.get_mut(&net.path) else {
        files.insert(net.path.clone(), net);
        return;
    };
    // Two concurrent calls may both have read the first state.
    let goes_on = net.before.is(&known.after) || net.before.is(&known.before);
    if !goes_on && known.doubt.is_empty() {
        "it was changed by others between two changes of the run".clone_into(&mut known.doubt);
    }
    if known.doubt.is_empty() {
        known.doubt = net.doubt;
    }
    known.after = net.after;
    known.folders.extend(net.folders);
    known.top = known.top.take().or(net.top);
}
