//! Finds skills below a folder.
//!
//! Invariant: links are not followed; depth, folders and entries are
//! bounded.

use crate::skills::disk;
use crate::skills::finding::Finding;
use crate::skills::skill::manifest;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Maximum levels below the root: a category or two above the skill, and some spare.
const MAX_DEPTH: usize = 6;

/// Maximum scanned folders, so that `skills import ~` ends.
const MAX_FOLDERS: usize = 2_000;

/// Maximum entries of one folder.
const MAX_ENTRIES: usize = 5_000;

/// Maximum findings of one scan.
const MAX_FINDINGS: usize = 100;

/// Folders of a skill that may contain templates for skills.
const RESOURCES: [&str; 3] = ["scripts", "references", "assets"];

/// The folder of installed packages.
const PACKAGES: &str = "node_modules";

/// The outcome of a scan.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Folders with a `SKILL.md`, the nearest first, then by name.
    pub(crate) folders: Vec<PathBuf>,
    /// Skipped files, and the reasons.
    pub(crate) findings: Vec<Finding>,
}

/// Finds skills in and below a canonical folder, except in hidden folders.
pub(crate) fn scan(root: &Path) -> Scan {
    scan_within(root, MAX_FOLDERS)
}

fn scan_within(root: &Path, max_folders: usize) -> Scan {
    let mut scan = Scan::default();
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    let mut seen = 1;
    while let Some((folder, depth)) = queue.pop_front() {
        let is_skill = manifest(&folder).is_some();
        for below in scan.folders_in(root, &folder, is_skill) {
            if depth == MAX_DEPTH {
                // Deep folders within a skill are expected; elsewhere they may contain skills.
                if !is_skill {
                    let what = format!("lies more than {MAX_DEPTH} folders deep");
                    scan.pass_over(&below, what, "move it up");
                }
            } else if seen == max_folders {
                let what = format!("has more than {max_folders} folders");
                scan.pass_over(root, what, "folders beyond them are not scanned");
                queue.clear();
                break;
            } else {
                seen += 1;
                queue.push_back((below, depth + 1));
            }
        }
        if is_skill {
            scan.folders.push(folder);
        }
    }
    scan
}

impl Scan {
    /// The folders in a folder that may contain skills.
    fn folders_in(&mut self, root: &Path, folder: &Path, is_skill: bool) -> Vec<PathBuf> {
        let entries = disk::sorted_entries(folder, MAX_ENTRIES).unwrap_or_else(|e| {
            let what = format!("cannot be listed: {e}");
            self.pass_over(folder, what, "make it readable and small");
            Vec::new()
        });
        let mut folders = Vec::new();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let theirs = is_skill && RESOURCES.contains(&&*name);
            if theirs || name.starts_with('.') || name == PACKAGES {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                // Links within a skill are checked with its files.
                Ok(kind) if kind.is_symlink() && !is_skill => self.link(root, &entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
        folders
    }

    /// Reports a link to a folder outside the root; a folder inside the root is found
    /// anyway.
    fn link(&mut self, root: &Path, path: &Path) {
        if let Err(trouble) = disk::inside(root, path)
            && (path.is_dir() || !path.exists())
        {
            self.pass_over(path, trouble.what, &trouble.right);
        }
    }

    fn pass_over(&mut self, path: &Path, what: String, right: &str) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::refused(path, what, right));
        }
    }
}

#[cfg(test)]
mod tests;
