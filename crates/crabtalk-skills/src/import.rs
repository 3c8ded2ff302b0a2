//! Skills of other agents, taken over as a copy.
//!
//! Invariants: a skill is copied whole or not at all, under a hidden name until
//! it is complete; what lies there already stays, unless the caller says
//! otherwise; only the bytes of regular files are copied, no links.

use crate::disk::{self, MAX_FILE_BYTES};
use crate::finding::{Finding, Level};
use crate::scan::scan;
use crate::skill::{SkillSource, folder_name, manifest, read};
use crate::{Error, load, system};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What no copy needs: histories, and what programs leave behind.
const LEFT_OUT: [&str; 4] = [".git", ".DS_Store", "__pycache__", "node_modules"];

/// What unfinished copies are called; hidden, so that no scan sees them.
const UNFINISHED: &str = ".importing-";

/// What an import came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Skills that are there now.
    pub copied: Vec<Copied>,
    /// Skills that were left, and why.
    pub skipped: Vec<NotCopied>,
    /// What else was passed over on the way.
    pub findings: Vec<Finding>,
}

/// A skill that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// By which it is called now.
    pub name: String,
    /// Where it was.
    pub from: PathBuf,
    /// Where the copy is.
    pub to: PathBuf,
    /// How many files it has.
    pub files: usize,
    /// Whether it took the place of one that was there.
    pub replaced: bool,
    /// What is wrong with it; it works all the same.
    pub warnings: Vec<Finding>,
}

/// A skill that was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCopied {
    /// Where it is.
    pub from: PathBuf,
    /// Why it was left out.
    pub reason: String,
    /// Whether it would be there now, had the system let it be copied.
    pub failed: bool,
}

/// Why a skill was not copied.
enum Why {
    /// It is no good, or its name is taken.
    Unfit(String),
    /// The system refused to copy it.
    Refused(String),
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self::Unfit(reason)
    }
}

/// Copies the skill in `from`, or all skills below it, into `to`, each into a
/// folder of its name. One whose name is taken, ignoring case, is skipped, or
/// with `replace` put in its place.
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
        // What lies within a skill is copied with it.
        if !folders.iter().any(|outer| folder.starts_with(outer)) {
            folders.push(folder);
        }
    }
    let mut taken = taken_names(&to);
    for folder in folders {
        match import_one(&folder, &to, &mut taken, replace) {
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

/// A name in use: by which folder, and whether this import put it there.
struct Taken {
    name: String,
    folder: PathBuf,
    ours: bool,
}

/// What is called how already: skills, wherever below they lie, and whatever
/// else stands in the way.
fn taken_names(to: &Path) -> Vec<Taken> {
    let skills = scan(to).folders.into_iter().map(|folder| Taken {
        name: match read(&folder, SkillSource::Home) {
            Ok(read) => read.summary.name,
            Err(_) => folder_name(&folder).to_owned(),
        },
        folder,
        ours: false,
    });
    let mut taken: Vec<Taken> = skills.collect();
    for entry in fs::read_dir(to).into_iter().flatten().flatten() {
        let (name, folder) = (entry.file_name(), entry.path());
        if let Some(name) = name.to_str()
            && !taken.iter().any(|t| t.folder == folder)
        {
            taken.push(Taken {
                name: name.to_owned(),
                folder,
                ours: false,
            });
        }
    }
    taken
}

/// Whether a skill may be put under a name, and which entry it then replaces.
fn may_take(
    name: &str,
    folder: &Path,
    to: &Path,
    taken: &[Taken],
    replace: bool,
) -> Result<Option<usize>, String> {
    let Some(at) = taken.iter().position(|t| t.name.eq_ignore_ascii_case(name)) else {
        return Ok(None);
    };
    let there = &taken[at];
    let place = there.folder.display();
    if there.folder == folder {
        return Err("it is that skill already".to_owned());
    }
    if there.ours {
        return Err(format!(
            "a second skill named `{name}`; the first was copied"
        ));
    }
    // A folder that is no skill itself may hold others.
    if there.folder.parent() != Some(to) || manifest(&there.folder).is_none() {
        return Err(format!(
            "`{name}` is taken by {place}, which is not replaced; move it away by hand"
        ));
    }
    if !replace {
        return Err(format!(
            "there is `{name}` already in {place}; say to replace it, or rename one"
        ));
    }
    Ok(Some(at))
}

fn import_one(
    folder: &Path,
    to: &Path,
    taken: &mut Vec<Taken>,
    replace: bool,
) -> Result<Copied, Why> {
    let skill = load(folder, SkillSource::External).map_err(|e| e.to_string())?;
    let name = skill.summary.name;
    let there = may_take(&name, folder, to, taken, replace)?;
    let tree = disk::tree(folder, |name| LEFT_OUT.contains(&name));
    if !tree.troubles.is_empty() {
        let all: Vec<String> = tree
            .troubles
            .into_iter()
            .map(|(path, t)| Finding::new(Level::Refused, &path, None, t).to_string())
            .collect();
        return Err(all.join("; ").into());
    }
    let old = there.map(|at| taken[at].folder.clone());
    let paths: Vec<String> = tree.files.into_iter().map(|file| file.path).collect();
    let target = to.join(&name);
    copy_whole(folder, &paths, &target, old.as_deref())
        .map_err(|e| Why::Refused(format!("cannot be copied to {}: {e}", target.display())))?;
    if let Some(at) = there {
        taken.remove(at);
    }
    taken.push(Taken {
        name: name.clone(),
        folder: target.clone(),
        ours: true,
    });
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
        // Rather a stray folder than the user's skill gone.
        let kept = unfinished.keep();
        let text = format!("{e}; what was there is in {}", kept.display());
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
