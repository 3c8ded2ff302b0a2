//! Checks skills strictly, for their authors: `skills check DIR`.

use crate::skills::finding::{Finding, Level};
use crate::skills::skill::{SkillSource, files_of, manifest, read};
use crate::skills::{Error, disk, scan};
use std::path::{Path, PathBuf};

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The folders of the checked skills.
    pub skills: Vec<PathBuf>,
    /// The findings, skill by skill.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether all skills follow the format, regardless of advice.
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|f| f.level == Level::Advice)
    }
}

/// Checks the skill in a folder, or all skills below it.
pub fn check(folder: &Path) -> Result<Report, Error> {
    let folder = disk::canonical_folder(folder)?;
    let mut report = Report {
        skills: Vec::new(),
        findings: Vec::new(),
    };
    if manifest(&folder).is_some() {
        report.skills.push(folder);
    } else {
        let scan = scan::scan(&folder);
        report.findings = scan.findings;
        report.skills = scan.folders;
        if report.skills.is_empty() {
            report.findings.push(Finding::refused(
                &folder,
                "there is no SKILL.md in it or below it",
                "name a skill's folder",
            ));
        }
    }
    for folder in &report.skills {
        match read(folder, SkillSource::External) {
            Ok(read) => report.findings.extend(read.findings),
            Err(findings) => report.findings.extend(findings),
        }
        report.findings.extend(files_of(folder).findings);
    }
    Ok(report)
}

#[cfg(test)]
mod tests;
