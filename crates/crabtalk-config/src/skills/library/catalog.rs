//! The skills on disk, before scope, and the cache of parsed files.

use crate::skills::Error;
use crate::skills::finding::{Finding, Level};
use crate::skills::scan::scan;
use crate::skills::skill::{self, Skill, SkillSource, SkillSummary, folder_name, manifest, read};
use crate::skills::system;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Where a project keeps its skills, below the cwd of a run.
const PROJECT_SKILLS: &str = ".crabtalk/skills";

/// Maximum number of cached roots.
pub(super) const MAX_CACHED_ROOTS: usize = 64;

/// Age from which a change is reliable: a younger file may change again with equal times,
/// since the coarsest file systems count in two seconds, and the comparison in whole
/// seconds adds one.
pub(super) const SETTLED: Duration = Duration::from_secs(3);

/// Parsed skills by root.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) roots: Mutex<HashMap<PathBuf, Arc<Parsed>>>,
    /// Minimum age of a change.
    pub(super) settled: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            roots: Mutex::default(),
            settled: SETTLED,
        }
    }
}

impl Cache {
    fn below(&self, root: &Path) -> Arc<Parsed> {
        self.lock().get(root).cloned().unwrap_or_default()
    }

    fn keep(&self, root: &Path, parsed: Parsed) {
        let mut roots = self.lock();
        if roots.len() >= MAX_CACHED_ROOTS {
            roots.clear();
        }
        roots.insert(root.to_owned(), Arc::new(parsed));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Parsed>>> {
        // Entries of the cache are valid or absent, also after a panic.
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The skills below one root, by folder.
pub(super) type Parsed = HashMap<PathBuf, Cached>;

#[derive(Debug, Clone)]
pub(super) struct Cached {
    stamp: Stamp,
    pub(super) skill: Result<SkillSummary, ()>,
    findings: Vec<Finding>,
}

/// Metadata of a file that changes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    file: [u64; 3],
    changed: [i64; 4],
}

impl Stamp {
    /// `None` if the last change is too recent.
    fn of(file: &Path, settled: Duration) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        let age = SystemTime::now()
            .duration_since(system::changed(&metadata)?)
            .ok()?;
        (age >= settled).then(|| Self {
            file: system::place(&metadata),
            changed: system::times(&metadata),
        })
    }
}

/// All skills that were found, before the scope.
#[derive(Default)]
pub(super) struct Catalog {
    pub(super) skills: Vec<SkillSummary>,
    /// Refused skills by the names of their folders.
    refused: Vec<(String, Vec<Finding>)>,
    pub(super) warnings: Vec<Finding>,
    /// Skills of an untrusted project, with the project's folder.
    pub(super) untrusted: Vec<(String, PathBuf)>,
}

impl Catalog {
    /// Adds the skills below a canonical root.
    pub(super) fn add(&mut self, root: &Path, source: SkillSource, cache: &Cache) {
        let scan = scan(root);
        self.warnings.extend(scan.findings);
        let before = cache.below(root);
        let mut parsed = Parsed::with_capacity(scan.folders.len());
        for folder in scan.folders {
            if folder == root {
                self.warnings.push(Finding::refused(
                    root,
                    "a SKILL.md lies among the skills' folders",
                    "move it into a separate folder",
                ));
                continue;
            }
            // Read first, so that a concurrent change is detected.
            let file = manifest(&folder).map(|name| folder.join(name));
            let stamp = file.and_then(|file| Stamp::of(&file, cache.settled));
            let kept = before
                .get(&folder)
                .filter(|kept| stamp.as_ref() == Some(&kept.stamp));
            let (skill, findings) = match kept {
                Some(kept) => (kept.skill.clone(), kept.findings.clone()),
                None => parse(&folder, source),
            };
            if let Some(stamp) = stamp {
                let cached = Cached {
                    stamp,
                    skill: skill.clone(),
                    findings: findings.clone(),
                };
                parsed.insert(folder.clone(), cached);
            }
            self.take(&folder, skill, findings);
        }
        cache.keep(root, parsed);
    }

    /// The project's folder of skills, if it is within the project.
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

    /// Removes the untrusted skills of a project.
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

    /// Reads the skill with this name from disk. The scope is checked before anything is
    /// read.
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
            // A skill that was renamed just now is not the one whose scope was checked.
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

    fn take(&mut self, folder: &Path, skill: Result<SkillSummary, ()>, findings: Vec<Finding>) {
        let Ok(skill) = skill else {
            self.warnings.extend(findings.iter().cloned());
            self.refused
                .push((folder_name(folder).to_owned(), findings));
            return;
        };
        let first = self
            .skills
            .iter()
            .find(|other| other.name.eq_ignore_ascii_case(&skill.name));
        if let Some(first) = first {
            let (name, used) = (&skill.name, first.folder.display());
            let what =
                format!("a second skill named `{name}` is ignored; the one in {used} is used");
            let right = "rename the folder of one of them";
            self.warnings.push(Finding::refused(folder, what, right));
        } else {
            self.warnings.extend(findings);
            self.skills.push(skill);
        }
    }

    /// Records a folder that exists but cannot be read.
    pub(super) fn unreachable(&mut self, path: &Path, error: &std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            let what = format!("cannot be read: {error}");
            self.warnings
                .push(Finding::refused(path, what, "make it readable"));
        }
    }
}

/// The cached part of a skill.
fn parse(folder: &Path, source: SkillSource) -> (Result<SkillSummary, ()>, Vec<Finding>) {
    match read(folder, source) {
        Ok(read) => {
            let mut findings = read.findings;
            findings.retain(|finding| finding.level != Level::Advice);
            (Ok(read.summary), findings)
        }
        Err(findings) => (Err(()), findings),
    }
}
