//! Where skills lie below a folder.
//!
//! Invariant: links are not followed, and depth, folders and entries are
//! bounded, so that a strange tree costs little.

use crate::disk;
use crate::finding::{Finding, Level, Trouble};
use crate::skill::manifest;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Levels below the root: a category or two above the skill, and some spare.
const MAX_DEPTH: usize = 6;

/// Folders looked into, so that `skills import ~` ends.
const MAX_FOLDERS: usize = 2_000;

/// Entries of one folder.
const MAX_ENTRIES: usize = 5_000;

/// Findings that anybody reads.
const MAX_FINDINGS: usize = 100;

/// Folders of a skill that hold its own matter, templates of skills among it.
const RESOURCES: [&str; 3] = ["scripts", "references", "assets"];

/// Where other people's packages lie.
const PACKAGES: &str = "node_modules";

/// What a scan came upon.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Folders with a `SKILL.md`, the nearest first, then by name.
    pub(crate) folders: Vec<PathBuf>,
    /// What was passed over, and why.
    pub(crate) findings: Vec<Finding>,
}

/// Looks for skills below a canonical folder, itself included. Hidden folders
/// are skipped.
pub(crate) fn scan(root: &Path) -> Scan {
    let mut scan = Scan::default();
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    let mut seen = 1;
    while let Some((folder, depth)) = queue.pop_front() {
        let is_skill = manifest(&folder).is_some();
        let entries = match disk::sorted_entries(&folder, MAX_ENTRIES) {
            Ok(entries) => entries,
            Err(e) => {
                scan.pass_over(
                    &folder,
                    format!("cannot be listed: {e}"),
                    "make it readable and small",
                );
                Vec::new()
            }
        };
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.')
                || name == PACKAGES
                || (is_skill && RESOURCES.contains(&&*name))
            {
                continue;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_symlink() && !is_skill {
                scan.link(root, &path);
            }
            if !kind.is_dir() {
                continue;
            }
            if depth == MAX_DEPTH {
                // Deep folders of a skill are its own; elsewhere one may hide.
                if !is_skill {
                    scan.pass_over(
                        &path,
                        format!("lies more than {MAX_DEPTH} folders deep"),
                        "move it up",
                    );
                }
                continue;
            }
            if seen == MAX_FOLDERS {
                scan.pass_over(
                    root,
                    format!("has more than {MAX_FOLDERS} folders"),
                    "skills beyond them are not found; remove some",
                );
                queue.clear();
                break;
            }
            seen += 1;
            queue.push_back((path, depth + 1));
        }
        if is_skill {
            scan.folders.push(folder);
        }
    }
    scan
}

impl Scan {
    /// Names a link to a folder that leaves the root; one that stays below it
    /// leads to what is found anyway.
    fn link(&mut self, root: &Path, path: &Path) {
        if let Err(trouble) = disk::inside(root, path)
            && (path.is_dir() || !path.exists())
        {
            self.push(path, trouble);
        }
    }

    fn pass_over(&mut self, path: &Path, what: String, right: &str) {
        self.push(path, Trouble::new(what, right));
    }

    fn push(&mut self, path: &Path, trouble: Trouble) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings
                .push(Finding::new(Level::Refused, path, None, trouble));
        }
    }
}

#[cfg(test)]
mod tests;
