//! One skill: its folder, its `SKILL.md` and the files it brings.

use crate::disk;
use crate::finding::{Finding, Level, Trouble};
use crate::format::{self, Document, MAX_SKILL_BYTES};
use crate::{Error, name};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How the file is called.
pub(crate) const MANIFEST: &str = "SKILL.md";

/// A spelling that is wrong and understood.
const LOWER_MANIFEST: &str = "skill.md";

/// Where a skill comes from, which decides what it may claim (SKILL-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkillSource {
    /// `config/skills` of the home.
    Home,
    /// `.crabtalk/skills` of a run's cwd: whoever wrote the project wrote it.
    Project,
    /// A folder of another agent.
    External,
}

/// What a list shows of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    /// By which it is called: its folder's, or where that is no name
    /// (CONV-2), the one in its frontmatter.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its folder, canonical.
    pub folder: PathBuf,
    /// Where it comes from.
    pub source: SkillSource,
}

/// A skill as it was on disk when it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What a list shows of it.
    pub summary: SkillSummary,
    /// The prompt.
    pub body: String,
    /// License, as its author put it.
    pub license: Option<String>,
    /// What it needs to run, as its author put it.
    pub compatibility: Option<String>,
    /// Whatever its author noted.
    pub metadata: BTreeMap<String, String>,
    /// Tools that it wants pre-approved, in its author's words; see
    /// [`Trust::preapproved`](crate::Trust::preapproved).
    pub allowed_tools: Vec<String>,
    /// The files it brings.
    pub files: Files,
    /// What is wrong with it.
    pub warnings: Vec<Finding>,
}

/// Files of a skill beside its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// Paths relative to its folder, with `/`, sorted.
    pub paths: Vec<String>,
    /// Files that are not used, and why.
    pub findings: Vec<Finding>,
}

/// Loads the skill in a folder. What is wrong is in its warnings, as long as
/// it can be used at all.
pub fn load(folder: &Path, source: SkillSource) -> Result<Skill, Error> {
    let folder = disk::canonical_folder(folder)?;
    let read = read(&folder, source).map_err(|findings| Error::Refused {
        name: folder_name(&folder).to_owned(),
        findings,
    })?;
    let files = files_of(&folder);
    let mut warnings = read.findings;
    warnings.retain(|finding| finding.level != Level::Advice);
    warnings.extend(files.findings.iter().cloned());
    Ok(Skill {
        summary: read.summary,
        body: read.document.body,
        license: read.document.license,
        compatibility: read.document.compatibility,
        metadata: read.document.metadata,
        allowed_tools: read.document.allowed_tools,
        files,
        warnings,
    })
}

/// A `SKILL.md` that can be used, and what is to be said about it.
pub(crate) struct Read {
    pub(crate) summary: SkillSummary,
    pub(crate) document: Document,
    pub(crate) findings: Vec<Finding>,
}

/// Reads the `SKILL.md` of a canonical folder.
pub(crate) fn read(folder: &Path, source: SkillSource) -> Result<Read, Vec<Finding>> {
    let Some(manifest) = manifest(folder) else {
        let trouble = Trouble::new(
            format!("there is no {MANIFEST}"),
            "add one, beginning with `---`, `name:` and `description:`",
        );
        return Err(vec![Finding::new(Level::Refused, folder, None, trouble)]);
    };
    let file = folder.join(manifest);
    let refused = |trouble| Finding::new(Level::Refused, &file, None, trouble);
    let bytes = disk::read(folder, manifest, MAX_SKILL_BYTES).map_err(|t| vec![refused(t)])?;
    let (document, mut findings) = format::parse(&bytes, &file).map_err(|f| vec![f])?;
    if manifest != MANIFEST {
        let trouble = Trouble::new(
            format!("the file is called {manifest}"),
            format!("rename it to {MANIFEST}"),
        );
        findings.push(Finding::new(Level::Wrong, &file, None, trouble));
    }
    let name = judge_name(folder, &file, &document, &mut findings);
    match (name, &document.description) {
        (Some(name), Some(description)) => Ok(Read {
            summary: SkillSummary {
                name,
                description: description.clone(),
                folder: folder.to_owned(),
                source,
            },
            document,
            findings,
        }),
        _ => Err(findings),
    }
}

/// The name a skill is called by, if there is any.
fn judge_name(
    folder: &Path,
    file: &Path,
    document: &Document,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    let own = folder_name(folder);
    let stated = document.name.as_deref().filter(|n| name::is_name(n));
    if name::is_name(own) {
        if document.name.as_deref().is_some_and(|name| name != own) {
            let trouble = Trouble::new(
                format!("the name is not that of its folder, `{own}`"),
                format!("write `name: {own}` or rename the folder"),
            );
            findings.push(Finding::new(
                Level::Wrong,
                file,
                document.name_line,
                trouble,
            ));
        }
        return Some(own.to_owned());
    }
    let right = format!(
        "rename it to `{}`",
        stated.map_or_else(|| name::suggest(own), str::to_owned)
    );
    let trouble = Trouble::new(
        format!("the folder's name {own:?} cannot name a skill"),
        right,
    );
    let level = match stated {
        Some(_) => Level::Wrong,
        None => Level::Refused,
    };
    findings.push(Finding::new(level, folder, None, trouble));
    stated.map(str::to_owned)
}

/// Under which spelling a folder has a `SKILL.md`; a link counts.
pub(crate) fn manifest(folder: &Path) -> Option<&'static str> {
    [MANIFEST, LOWER_MANIFEST]
        .into_iter()
        .find(|name| fs::symlink_metadata(folder.join(name)).is_ok())
}

pub(crate) fn folder_name(folder: &Path) -> &str {
    folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

pub(crate) fn files_of(folder: &Path) -> Files {
    let tree = disk::tree(folder, disk::hidden);
    Files {
        paths: tree
            .files
            .into_iter()
            .map(|file| file.path)
            .filter(|path| path != MANIFEST && path != LOWER_MANIFEST)
            .collect(),
        findings: tree
            .troubles
            .into_iter()
            // What is wrong with the SKILL.md itself was said when it was read.
            .filter(|(path, _)| {
                Some(path.as_path()) != manifest(folder).map(|m| folder.join(m)).as_deref()
            })
            .map(|(path, trouble)| Finding::new(Level::Refused, &path, None, trouble))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
