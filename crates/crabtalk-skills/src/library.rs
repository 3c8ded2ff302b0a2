//! Which skills there are, and the way from a name to one of them.
//!
//! Invariants: folders count in their order and the first skill of a name wins,
//! ignoring case; a project's skills come last, so that a checkout never takes
//! the place of what the user installed; and they count only where an owner has
//! trusted the folder, so that what a checkout says of them is read by nobody
//! before. What is handed out was read from disk
//! by that very call. The cache only spares parsing: the folders are walked
//! every time.

mod catalog;

use crate::finding::Finding;
use crate::skill::{Skill, SkillSource, SkillSummary};
use crate::{Error, TrustFile, block, name};
use catalog::{Cache, Catalog};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Longest text that is searched for.
const MAX_QUERY_CHARS: usize = 256;

/// A folder of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is; it need not be there.
    pub path: PathBuf,
    /// What its skills may claim.
    pub source: SkillSource,
}

/// The skills in reach, and what is wrong around them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In the order of their folders.
    pub skills: Vec<SkillSummary>,
    /// Refused skills, duplicates, links and whatever the skills' own files
    /// have wrong.
    pub warnings: Vec<Finding>,
    /// Files and folders that it was made from, some of which need not be
    /// there: while none of them changes, neither does the listing.
    pub looked_at: Vec<PathBuf>,
    /// How many skills of the project are left out because nobody has trusted
    /// its folder.
    pub untrusted: usize,
}

/// What a name or a piece of one leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The skill of that name.
    Skill(Box<Skill>),
    /// No skill has that name; these have it in their name or description.
    Matches(Vec<SkillSummary>),
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

    /// The same, in which skills of a project count only once that is trusted.
    #[must_use]
    pub fn trusting(mut self, trust: TrustFile) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Looks in other folders from now on.
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

    /// Everything there is, trusted or not, for a person to see.
    pub fn list_all(&self, cwd: Option<&Path>) -> Listing {
        self.on_disk(cwd).0.into()
    }

    /// What an agent asked for: the skill of that name, else those that have
    /// the text in name or description; all of them when it is empty.
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
        let skill = self.catalog(cwd).exact(name, allows)?;
        Ok(skill.map(|skill| Slash {
            text: skill.render(arguments),
            skill,
        }))
    }

    fn catalog(&self, cwd: Option<&Path>) -> Catalog {
        let (mut catalog, project) = self.on_disk(cwd);
        if let (Some(file), Some(project)) = (&self.trust, project) {
            catalog.looked_at.push(file.path().to_owned());
            // What is not understood trusts nothing; whoever asks for trust
            // itself says so.
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
            catalog.looked_at.push(folder.path.clone());
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
            looked_at: catalog.looked_at,
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
