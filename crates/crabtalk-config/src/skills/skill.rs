//! One skill: its folder, its `SKILL.md` and its files.

use crate::skills::disk;
use crate::skills::finding::{Finding, Level, Trouble};
use crate::skills::format::{self, Document, MAX_SKILL_BYTES};
use crate::skills::{Error, name};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of a skill's main file.
pub(crate) const MANIFEST: &str = "SKILL.md";

/// An accepted misspelling.
const LOWER_MANIFEST: &str = "skill.md";

/// The origin of a skill, which determines its rights (SKILL-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkillSource {
    /// `config/skills` of the home.
    Home,
    /// `.crabtalk/skills` of a run's cwd, written by the project's authors.
    Project,
    /// A folder of another agent.
    External,
}

/// A skill in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    /// The folder's name, or the one in the frontmatter if the folder's is not a valid
    /// name (CONV-2).
    pub name: String,
    /// The purpose of the skill.
    pub description: String,
    /// The canonical folder.
    pub folder: PathBuf,
    /// Its origin.
    pub source: SkillSource,
}

/// A loaded skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its summary.
    pub summary: SkillSummary,
    /// The prompt.
    pub body: String,
    /// Its license.
    pub license: Option<String>,
    /// Its requirements.
    pub compatibility: Option<String>,
    /// Its metadata.
    pub metadata: BTreeMap<String, String>,
    /// Tools to pre-approve, as written; see
    /// [`Trust::preapproved`](crate::skills::Trust::preapproved).
    pub allowed_tools: Vec<String>,
    /// Its files.
    pub files: Files,
    /// Its warnings.
    pub warnings: Vec<Finding>,
}

/// The files of a skill except its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// Paths relative to its folder, with `/`, sorted.
    pub paths: Vec<String>,
    /// Unused files, and the reasons.
    pub findings: Vec<Finding>,
}

/// Loads the skill in a folder. Problems of a usable skill become warnings.
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

/// A usable `SKILL.md` with its findings.
pub(crate) struct Read {
    pub(crate) summary: SkillSummary,
    pub(crate) document: Document,
    pub(crate) findings: Vec<Finding>,
}

/// Reads the `SKILL.md` of a canonical folder.
pub(crate) fn read(folder: &Path, source: SkillSource) -> Result<Read, Vec<Finding>> {
    let Some(manifest) = manifest(folder) else {
        let right = "add one, beginning with `---`, `name:` and `description:`";
        let what = format!("there is no {MANIFEST}");
        return Err(vec![Finding::refused(folder, what, right)]);
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

/// The skill's name, if a valid one exists.
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
                format!("the name differs from that of its folder, `{own}`"),
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

/// The name of the `SKILL.md` in a folder, which may be a link.
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
    let mut tree = disk::tree(folder, disk::hidden);
    tree.files
        .retain(|path| path != MANIFEST && path != LOWER_MANIFEST);
    // Findings about the SKILL.md are reported when it is read.
    let manifest = manifest(folder).map(|name| folder.join(name));
    tree.troubles
        .retain(|finding| Some(&finding.file) != manifest.as_ref());
    Files {
        paths: tree.files,
        findings: tree.troubles,
    }
}

#[cfg(test)]
mod tests;
