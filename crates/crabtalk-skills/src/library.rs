//! Which skills there are, and the way from a name to one of them (RFC 0036).
//!
//! Invariants: folders count in their order and the first skill of a name wins,
//! ignoring case; a project's skills come last, so that a checkout never takes
//! the place of what the user installed. What is handed out was read from disk
//! by that very call. The cache only spares parsing: the folders are walked
//! every time.

use crate::block;
use crate::finding::{Finding, Level, Trouble};
use crate::scan::scan;
use crate::skill::{self, Skill, Source, Summary, folder_name, manifest, read};
use crate::{Error, name};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Where a project keeps its skills, below the cwd of a run.
const PROJECT_SKILLS: &str = ".crabtalk/skills";

/// Roots kept in the cache; projects come and go.
const MAX_CACHED_ROOTS: usize = 64;

/// A file changed more recently than this may change again without its times
/// showing it, as the coarsest file systems count in two seconds.
/// One more second, because only whole ones are compared.
const SETTLED: Duration = Duration::from_secs(3);

/// Longest text that is searched for.
const MAX_QUERY_CHARS: usize = 256;

/// A folder of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is; it need not be there.
    pub path: PathBuf,
    /// What its skills may claim.
    pub source: Source,
}

/// The skills in reach, and what is wrong around them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In the order of their folders.
    pub skills: Vec<Summary>,
    /// Refused skills, duplicates, links and whatever the skills' own files
    /// have wrong.
    pub warnings: Vec<Finding>,
}

/// What a name or a piece of one leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The skill of that name.
    Skill(Box<Skill>),
    /// No skill has that name; these have it in their name or description.
    Matches(Vec<Summary>),
}

/// A message that called a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slash {
    /// The skill.
    pub skill: Skill,
    /// The message that the agent gets in place of the one that was sent.
    pub text: String,
}

/// All skills of a node. Sharing it costs nothing: it has no state but a cache.
#[derive(Debug)]
pub struct Library {
    folders: Vec<Folder>,
    cache: Mutex<HashMap<PathBuf, Arc<Parsed>>>,
    settled: Duration,
}

/// What was read below one root, by folder.
type Parsed = HashMap<PathBuf, Cached>;

#[derive(Debug, Clone)]
struct Cached {
    stamp: Stamp,
    skill: Result<Summary, ()>,
    findings: Vec<Finding>,
}

/// What changes when a file does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    file: [u64; 3],
    changed: [i64; 4],
}

impl Stamp {
    /// `None` while the file is too young to tell by it.
    fn of(file: &Path, settled: Duration) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        // Not the time of modification, which tools set back as they like.
        let changed = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
        let age = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + changed)
            .ok()?;
        (age >= settled).then(|| Self {
            file: [metadata.dev(), metadata.ino(), metadata.size()],
            changed: [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ],
        })
    }
}

/// Everything found, before scope.
#[derive(Default)]
struct Catalog {
    skills: Vec<Summary>,
    /// Refused skills, by the name of their folder.
    refused: Vec<(String, Vec<Finding>)>,
    warnings: Vec<Finding>,
}

impl Library {
    /// A library over these folders, in this order.
    pub fn new(folders: Vec<Folder>) -> Self {
        Self {
            folders,
            cache: Mutex::default(),
            settled: SETTLED,
        }
    }

    /// The skills that `allows` lets through, those of the project at `cwd`
    /// among them.
    pub fn list(&self, cwd: Option<&Path>, allows: &dyn Fn(&str) -> bool) -> Listing {
        let mut catalog = self.catalog(cwd);
        catalog.skills.retain(|skill| allows(&skill.name));
        Listing {
            skills: catalog.skills,
            warnings: catalog.warnings,
        }
    }

    /// The skill of exactly this name, ignoring case, fresh from disk.
    pub fn load(
        &self,
        name: &str,
        cwd: Option<&Path>,
        allows: &dyn Fn(&str) -> bool,
    ) -> Result<Skill, Error> {
        guard(name)?;
        exact(&self.catalog(cwd), name, allows)?.ok_or_else(|| Error::NotFound(shorten(name)))
    }

    /// What an agent asked for: the skill of that name, else those that have
    /// the text in name or description; all of them when it is empty.
    pub fn find(
        &self,
        query: &str,
        cwd: Option<&Path>,
        allows: &dyn Fn(&str) -> bool,
    ) -> Result<Answer, Error> {
        let query = query.trim();
        guard(query)?;
        let mut catalog = self.catalog(cwd);
        if let Some(skill) = exact(&catalog, query, allows)? {
            return Ok(Answer::Skill(Box::new(skill)));
        }
        catalog.skills.retain(|skill| allows(&skill.name));
        let wanted = shorten(query).to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let (mut named, others): (Vec<_>, Vec<_>) =
            catalog.skills.into_iter().partition(|s| has(&s.name));
        named.extend(others.into_iter().filter(|s| has(&s.description)));
        Ok(Answer::Matches(named))
    }

    /// A message that begins with `/name` of a skill, made into what the agent
    /// gets: the skill's block and the arguments. `None` for any other text,
    /// which goes to the agent as it is.
    pub fn resolve_slash(
        &self,
        text: &str,
        cwd: Option<&Path>,
        allows: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Slash>, Error> {
        let Some(command) = text.strip_prefix('/') else {
            return Ok(None);
        };
        let (name, arguments) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        if !name::is_name(name) {
            return Ok(None);
        }
        let skill = exact(&self.catalog(cwd), name, allows)?;
        Ok(skill.map(|skill| Slash {
            text: skill.render(arguments),
            skill,
        }))
    }

    fn catalog(&self, cwd: Option<&Path>) -> Catalog {
        let mut catalog = Catalog::default();
        let mut roots = HashSet::new();
        for folder in &self.folders {
            match fs::canonicalize(&folder.path) {
                Ok(root) if roots.insert(root.clone()) => {
                    self.add(&root, folder.source, &mut catalog);
                }
                Ok(_) => {}
                Err(e) => catalog.unreachable(&folder.path, &e),
            }
        }
        if let Some(root) = cwd.and_then(|cwd| project_root(cwd, &mut catalog))
            && roots.insert(root.clone())
        {
            self.add(&root, Source::Project, &mut catalog);
        }
        catalog
    }

    fn add(&self, root: &Path, source: Source, catalog: &mut Catalog) {
        let scan = scan(root);
        catalog.warnings.extend(scan.findings);
        let before = self.lock().get(root).cloned().unwrap_or_default();
        let mut parsed = Parsed::with_capacity(scan.folders.len());
        for folder in scan.folders {
            if folder == root {
                let trouble = Trouble::new(
                    "a SKILL.md lies among the skills' folders",
                    "move it into a folder of its own",
                );
                catalog
                    .warnings
                    .push(Finding::new(Level::Refused, root, None, trouble));
                continue;
            }
            // Taken before reading, so that a change in between is seen.
            let stamp = manifest(&folder).and_then(|m| Stamp::of(&folder.join(m), self.settled));
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
            catalog.take(&folder, skill, findings);
        }
        let mut cache = self.lock();
        if cache.len() >= MAX_CACHED_ROOTS {
            cache.clear();
        }
        cache.insert(root.to_owned(), Arc::new(parsed));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Parsed>>> {
        // A cache is right or absent, so a panic elsewhere spoils nothing.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Catalog {
    fn take(&mut self, folder: &Path, skill: Result<Summary, ()>, findings: Vec<Finding>) {
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
            let trouble = Trouble::new(
                format!(
                    "a second skill named `{}` is passed over; the one in {} is used",
                    skill.name,
                    first.folder.display()
                ),
                "rename the folder of one of them",
            );
            self.warnings
                .push(Finding::new(Level::Refused, folder, None, trouble));
        } else {
            self.warnings.extend(findings);
            self.skills.push(skill);
        }
    }

    fn unreachable(&mut self, path: &Path, error: &std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            let trouble = Trouble::new(format!("cannot be read: {error}"), "make it readable");
            self.warnings
                .push(Finding::new(Level::Refused, path, None, trouble));
        }
    }
}

/// What the cache keeps of a skill.
fn parse(folder: &Path, source: Source) -> (Result<Summary, ()>, Vec<Finding>) {
    match read(folder, source) {
        Ok(read) => {
            let mut findings = read.findings;
            findings.retain(|finding| finding.level != Level::Advice);
            (Ok(read.summary), findings)
        }
        Err(findings) => (Err(()), findings),
    }
}

/// The project's folder of skills, if it lies within the project.
fn project_root(cwd: &Path, catalog: &mut Catalog) -> Option<PathBuf> {
    let path = cwd.join(PROJECT_SKILLS);
    let root = match fs::canonicalize(&path) {
        Ok(root) => root,
        Err(e) => {
            catalog.unreachable(&path, &e);
            return None;
        }
    };
    let within = fs::canonicalize(cwd).is_ok_and(|cwd| root.starts_with(cwd));
    if !within {
        let trouble = Trouble::new(
            format!(
                "is a symbolic link that leaves the project: it leads to {}",
                root.display()
            ),
            "put a folder there in its place",
        );
        catalog
            .warnings
            .push(Finding::new(Level::Refused, &path, None, trouble));
        return None;
    }
    Some(root)
}

fn guard(name: &str) -> Result<(), Error> {
    if name.contains("..") || name.contains(['/', '\\']) {
        return Err(Error::BadName(shorten(name)));
    }
    Ok(())
}

/// The skill of that name, fresh from disk. Refusals of scope come before
/// anything is read.
fn exact(
    catalog: &Catalog,
    name: &str,
    allows: &dyn Fn(&str) -> bool,
) -> Result<Option<Skill>, Error> {
    let found = catalog
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
    let refused = catalog
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

fn shorten(text: &str) -> String {
    text.chars().take(MAX_QUERY_CHARS).collect()
}

impl Skill {
    /// The block that the model gets, with the arguments put in place or below.
    pub fn render(&self, arguments: &str) -> String {
        block::render(self, arguments)
    }
}

#[cfg(test)]
mod tests;
