//! The skills on disk, before scope.

use crate::Error;
use crate::finding::{Finding, Level};
use crate::scan::scan;
use crate::skill::{self, Skill, SkillSource, SkillSummary, folder_name, read};
use std::path::{Path, PathBuf};

/// Where a project keeps its skills, below the cwd of a run.
const PROJECT_SKILLS: &str = ".crabtalk/skills";

/// Everything found, before scope.
#[derive(Default)]
pub(super) struct Catalog {
    pub(super) skills: Vec<SkillSummary>,
    /// Refused skills, by the name of their folder.
    refused: Vec<(String, Vec<Finding>)>,
    pub(super) warnings: Vec<Finding>,
    /// Skills of an untrusted project, with its folder.
    pub(super) untrusted: Vec<(String, PathBuf)>,
}

impl Catalog {
    /// Adds the skills below a canonical root.
    pub(super) fn add(&mut self, root: &Path, source: SkillSource) {
        let scan = scan(root);
        self.warnings.extend(scan.findings);
        for folder in scan.folders {
            if folder == root {
                self.warnings.push(Finding::refused(
                    root,
                    "a SKILL.md lies among the skills' folders",
                    "move it into a separate folder",
                ));
                continue;
            }
            self.take(&folder, source);
        }
    }

    /// The project's folder of skills, if it lies within the project.
    pub(super) fn project_root(&mut self, cwd: &Path) -> Option<PathBuf> {
        let path = cwd.join(PROJECT_SKILLS);
        let root = match path.canonicalize() {
            Ok(root) => root,
            Err(e) => {
                self.unreachable(&path, &e);
                return None;
            }
        };
        let within = cwd.canonicalize().is_ok_and(|cwd| root.starts_with(cwd));
        if !within {
            let what = "is a symbolic link that leaves the project: it leads to";
            let what = format!("{what} {}", root.display());
            let right = "put a folder there in its place";
            self.warnings.push(Finding::refused(&path, what, right));
            return None;
        }
        Some(root)
    }

    /// Leaves out what of a project is not trusted.
    pub(super) fn leave_out(&mut self, project: &Path, trusts: &dyn Fn(&Path) -> bool) {
        let out =
            |skill: &SkillSummary| skill.source == SkillSource::Project && !trusts(&skill.folder);
        let (left, kept) = std::mem::take(&mut self.skills).into_iter().partition(out);
        self.skills = kept;
        let left: Vec<SkillSummary> = left;
        let left = left
            .into_iter()
            .map(|skill| (skill.name, project.to_owned()));
        self.untrusted.extend(left);
    }

    /// The skill with the name, read from disk. Refusals of scope come before
    /// anything is read.
    pub(super) fn exact(
        &self,
        name: &str,
        allows: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Skill>, Error> {
        let found = self
            .skills
            .iter()
            .find(|skill| skill.name.eq_ignore_ascii_case(name));
        if let Some(summary) = found {
            if !allows(&summary.name) {
                return Err(Error::OutOfScope(summary.name.clone()));
            }
            let skill = skill::load(&summary.folder, summary.source)?;
            // Renamed in this moment, it is not what scope was asked about.
            return Ok((skill.summary.name == summary.name).then_some(skill));
        }
        let untrusted = self
            .untrusted
            .iter()
            .find(|(untrusted, _)| untrusted.eq_ignore_ascii_case(name));
        if let Some((name, project)) = untrusted {
            if !allows(name) {
                return Err(Error::OutOfScope(name.clone()));
            }
            return Err(Error::Untrusted {
                name: name.clone(),
                project: project.clone(),
            });
        }
        let refused = self
            .refused
            .iter()
            .find(|(folder, _)| folder.eq_ignore_ascii_case(name));
        match refused {
            Some((folder, _)) if !allows(folder) => Err(Error::OutOfScope(folder.clone())),
            Some((folder, findings)) => Err(Error::Refused {
                name: folder.clone(),
                findings: findings.clone(),
            }),
            None => Ok(None),
        }
    }

    fn take(&mut self, folder: &Path, source: SkillSource) {
        let (skill, mut findings) = match read(folder, source) {
            Ok(read) => (read.summary, read.findings),
            Err(findings) => {
                self.warnings.extend(findings.iter().cloned());
                self.refused
                    .push((folder_name(folder).to_owned(), findings));
                return;
            }
        };
        findings.retain(|finding| finding.level != Level::Advice);
        let first = self
            .skills
            .iter()
            .find(|other| other.name.eq_ignore_ascii_case(&skill.name));
        if let Some(first) = first {
            let (name, used) = (&skill.name, first.folder.display());
            let what =
                format!("a second skill named `{name}` is passed over; the one in {used} is used");
            let right = "rename the folder of one of them";
            self.warnings.push(Finding::refused(folder, what, right));
        } else {
            self.warnings.extend(findings);
            self.skills.push(skill);
        }
    }

    /// Notes that a folder is there and cannot be read.
    pub(super) fn unreachable(&mut self, path: &Path, error: &std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            let what = format!("cannot be read: {error}");
            self.warnings
                .push(Finding::refused(path, what, "make it readable"));
        }
    }
}
