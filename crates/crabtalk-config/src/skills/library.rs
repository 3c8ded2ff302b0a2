//! The list of skills, and the lookup by name.
//!
//! Invariants: the first skill of a name wins, in the order of folders and
//! ignoring case; a project's skills come last, so that a checkout never replaces installed skills, and are used only
//! if an owner trusted the folder. A returned skill was read from disk by that call. The cache only saves parsing: the
//! folders are walked every time.

mod catalog;

use crate::skills::finding::Finding;
use crate::skills::skill::{Skill, SkillSource, SkillSummary};
use crate::skills::{Error, TrustFile, block, name};
use catalog::{Cache, Catalog};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Longest text that is searched for.
const MAX_QUERY_CHARS: usize = 256;

/// A folder of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path; it may be missing.
    pub path: PathBuf,
    /// The origin of its skills.
    pub source: SkillSource,
}

/// The skills in scope, and warnings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In the order of their folders.
    pub skills: Vec<SkillSummary>,
    /// Refused skills, duplicates, links and problems in the skills' files.
    pub warnings: Vec<Finding>,
    /// The number of skills of an untrusted project.
    pub untrusted: usize,
}

/// The outcome of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The skill with the name.
    Skill(Box<Skill>),
    /// The skills with the text in their name or description.
    Matches(Vec<SkillSummary>),
}

/// A message that called a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slash {
    /// The skill.
    pub skill: Skill,
    /// The message for the agent in place of the sent one.
    pub text: String,
}

/// All skills of a node.
#[derive(Debug)]
pub struct Library {
    folders: RwLock<Arc<[Folder]>>,
    cache: Cache,
    trust: Option<TrustFile>,
}

impl Library {
    /// A library over these folders, in this order.
    pub fn new(folders: Vec<Folder>) -> Self {
        Self {
            folders: RwLock::new(folders.into()),
            cache: Cache::default(),
            trust: None,
        }
    }

    /// Uses skills of a project only if it is trusted.
    #[must_use]
    pub fn trusting(mut self, trust: TrustFile) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Replaces the folders.
    pub fn look_in(&self, folders: Vec<Folder>) {
        let mut held = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        *held = folders.into();
    }

    fn folders(&self) -> Arc<[Folder]> {
        // A list is whole or was never put there, so a panic spoils nothing.
        let held = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&held)
    }

    /// The skills that `allows` lets through, those of the project at `cwd`
    /// among them.
    pub fn list(&self, cwd: Option<&Path>, allows: &dyn Fn(&str) -> bool) -> Listing {
        let mut catalog = self.catalog(cwd);
        catalog.skills.retain(|skill| allows(&skill.name));
        catalog.into()
    }

    /// All skills, also untrusted ones, for a person.
    pub fn list_all(&self, cwd: Option<&Path>) -> Listing {
        self.on_disk(cwd).0.into()
    }

    /// The skill with the name, else those with
    /// the text in name or description; all skills for an empty text.
    pub fn find(
        &self,
        query: &str,
        cwd: Option<&Path>,
        allows: &dyn Fn(&str) -> bool,
    ) -> Result<Lookup, Error> {
        let query = query.trim();
        guard(query)?;
        let mut catalog = self.catalog(cwd);
        if let Some(skill) = catalog.exact(query, allows)? {
            return Ok(Lookup::Skill(Box::new(skill)));
        }
        catalog.skills.retain(|skill| allows(&skill.name));
        let wanted = shorten(query).to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let (mut named, others): (Vec<_>, Vec<_>) =
            catalog.skills.into_iter().partition(|s| has(&s.name));
        named.extend(others.into_iter().filter(|s| has(&s.description)));
        Ok(Lookup::Matches(named))
    }

    /// Expands a message that begins with `/name` of a skill to the skill's block and the arguments.
    /// `None` for any other text.
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
        let skill = self.catalog(cwd).exact(name, allows)?;
        Ok(skill.map(|skill| Slash {
            text: skill.render(arguments),
            skill,
        }))
    }

    fn catalog(&self, cwd: Option<&Path>) -> Catalog {
        let (mut catalog, project) = self.on_disk(cwd);
        if let (Some(file), Some(project)) = (&self.trust, project) {
            // An invalid file trusts nothing; the trust commands report it.
            let trust = file.load().unwrap_or_default();
            catalog.leave_out(&project, &|folder| trust.reaches(folder));
        }
        catalog
    }

    /// Everything on disk, and the project whose skills are in it.
    fn on_disk(&self, cwd: Option<&Path>) -> (Catalog, Option<PathBuf>) {
        let mut catalog = Catalog::default();
        let mut roots = HashSet::new();
        for folder in self.folders().iter() {
            match folder.path.canonicalize() {
                Ok(root) if roots.insert(root.clone()) => {
                    catalog.add(&root, folder.source, &self.cache);
                }
                Ok(_) => {}
                Err(e) => catalog.unreachable(&folder.path, &e),
            }
        }
        let mut project = None;
        if let Some(cwd) = cwd
            && let Some(root) = catalog.project_root(cwd)
            && roots.insert(root.clone())
        {
            catalog.add(&root, SkillSource::Project, &self.cache);
            project = Some(cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()));
        }
        (catalog, project)
    }
}

impl From<Catalog> for Listing {
    fn from(catalog: Catalog) -> Self {
        Self {
            untrusted: catalog.untrusted.len(),
            skills: catalog.skills,
            warnings: catalog.warnings,
        }
    }
}

fn guard(name: &str) -> Result<(), Error> {
    if name.contains("..") || name.contains(['/', '\\']) {
        return Err(Error::BadName(shorten(name)));
    }
    Ok(())
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
