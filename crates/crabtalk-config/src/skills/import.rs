//! Copies skills from other agents.
//!
//! Invariants: a skill is copied completely or not at all, under a hidden name until it is
//! complete; existing skills are replaced only on request; links are not copied, only files.

use crate::skills::disk::{self, MAX_FILE_BYTES};
use crate::skills::finding::Finding;
use crate::skills::scan::scan;
use crate::skills::skill::{SkillSource, folder_name, manifest};
use crate::skills::{Error, load, system};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Skipped files: histories and caches.
const LEFT_OUT: [&str; 4] = [".git", ".DS_Store", "__pycache__", "node_modules"];

/// The prefix of unfinished copies; hidden from scans.
const UNFINISHED: &str = ".importing-";

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// The copied skills.
    pub copied: Vec<Copied>,
    /// The skipped skills.
    pub skipped: Vec<NotCopied>,
    /// Findings of the scan.
    pub findings: Vec<Finding>,
}

/// A skill that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub name: String,
    /// The original folder.
    pub from: PathBuf,
    /// The copy.
    pub to: PathBuf,
    /// The number of files.
    pub files: usize,
    /// Whether it replaced an existing skill.
    pub replaced: bool,
    /// Its warnings.
    pub warnings: Vec<Finding>,
}

/// A skill that was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCopied {
    /// Its folder.
    pub from: PathBuf,
    /// The reason.
    pub reason: String,
    /// Whether the copy failed with an error of the system.
    pub failed: bool,
}

/// The reason why a skill was not copied.
enum Why {
    /// The skill is invalid, or its name is taken.
    Unfit(String),
    /// The system returned an error.
    Refused(String),
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self::Unfit(reason)
    }
}

/// Copies the skill in `from`, or all skills below it, into `to`, each into a folder with
/// its name. A skill whose name exists, ignoring case, is skipped or, with `replace`,
/// replaces the existing one.
pub fn import(from: &Path, to: &Path, replace: bool) -> Result<ImportReport, Error> {
    let from = disk::canonical_folder(from)?;
    crabtalk_files::create_folder(to).map_err(|e| Error::io("create", to, e))?;
    let to = disk::canonical_folder(to)?;
    let found = scan(&from);
    let mut report = ImportReport {
        findings: found.findings,
        ..ImportReport::default()
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in found.folders {
        // Skills within a skill are copied with it.
        if !folders.iter().any(|outer| folder.starts_with(outer)) {
            folders.push(folder);
        }
    }
    for folder in folders {
        match import_one(&folder, &to, &report.copied, replace) {
            Ok(copied) => report.copied.push(copied),
            Err(why) => {
                let (reason, failed) = match why {
                    Why::Unfit(reason) => (reason, false),
                    Why::Refused(reason) => (reason, true),
                };
                report.skipped.push(NotCopied {
                    from: folder,
                    reason,
                    failed,
                });
            }
        }
    }
    Ok(report)
}

/// The folder that a copy replaces, if there is one.
fn replaced(
    name: &str,
    folder: &Path,
    to: &Path,
    copied: &[Copied],
    replace: bool,
) -> Result<Option<PathBuf>, String> {
    let entries = fs::read_dir(to).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let Some(there) = paths.find(|path| folder_name(path).eq_ignore_ascii_case(name)) else {
        return Ok(None);
    };
    let place = there.display();
    if there == folder {
        return Err("it is the same folder".to_owned());
    }
    if copied.iter().any(|copy| copy.to == there) {
        return Err(format!(
            "a second skill named `{name}`; the first was copied"
        ));
    }
    // A folder without a SKILL.md may contain skills.
    if manifest(&there).is_none() {
        return Err(format!(
            "`{name}` is taken by {place}, which is not replaced; move it away by hand"
        ));
    }
    if !replace {
        return Err(format!(
            "`{name}` exists already in {place}; replace it with --replace, or rename one"
        ));
    }
    Ok(Some(there))
}

fn import_one(folder: &Path, to: &Path, copied: &[Copied], replace: bool) -> Result<Copied, Why> {
    let skill = load(folder, SkillSource::External).map_err(|e| e.to_string())?;
    let name = skill.summary.name;
    let old = replaced(&name, folder, to, copied, replace)?;
    let tree = disk::tree(folder, |name| LEFT_OUT.contains(&name));
    if !tree.troubles.is_empty() {
        let all: Vec<String> = tree.troubles.iter().map(ToString::to_string).collect();
        return Err(all.join("; ").into());
    }
    let paths = tree.files;
    let target = to.join(&name);
    copy_whole(folder, &paths, &target, old.as_deref())
        .map_err(|e| Why::Refused(format!("cannot be copied to {}: {e}", target.display())))?;
    Ok(Copied {
        name,
        from: folder.to_owned(),
        to: target,
        files: paths.len(),
        replaced: old.is_some(),
        warnings: skill.warnings,
    })
}

/// Copies beside the target and renames; the old folder goes last.
fn copy_whole(from: &Path, paths: &[String], target: &Path, old: Option<&Path>) -> io::Result<()> {
    let to = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(to)?;
    let copy = unfinished.path().join("new");
    fs::create_dir(&copy)?;
    for path in paths {
        copy_file(from, path, &copy)?;
    }
    let aside = unfinished.path().join("old");
    if let Some(old) = old {
        fs::rename(old, &aside)?;
    }
    let Err(e) = fs::rename(&copy, target) else {
        return Ok(());
    };
    if let Some(old) = old
        && fs::rename(&aside, old).is_err()
    {
        // A stray folder is better than a lost skill.
        let kept = unfinished.keep();
        let text = format!("{e}; the replaced skill is in {}", kept.display());
        return Err(io::Error::other(text));
    }
    Err(e)
}

fn copy_file(from: &Path, path: &str, copy: &Path) -> io::Result<()> {
    let source = disk::open_inside(from, path, MAX_FILE_BYTES)
        .map_err(|t| io::Error::other(format!("{path} {}", t.what)))?;
    let target = copy.join(path);
    if let Some(folder) = target.parent() {
        crabtalk_files::create_folder(folder)?;
    }
    let metadata = source.metadata()?;
    let mut file = system::create_private(&target)?;
    let copied = io::copy(&mut source.take(MAX_FILE_BYTES + 1), &mut file)?;
    if copied > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("{path} grew while it was copied")));
    }
    file.flush()?;
    system::copy_mode(&metadata, &file)
}

#[cfg(test)]
mod tests;
