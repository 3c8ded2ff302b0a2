//! Reads the surroundings of a run's folder: project instructions and skills.
//!
//! Invariant: a hanging disk delays a run by some seconds, and the run continues without
//! them.

use crate::skills::Skills;
use crabtalk_config::skills::SkillSummary;
use crabtalk_memory::Project;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The project's instructions in trusted folders.
    pub(crate) project: Project,
    /// All skills that apply to the folder, before the scope.
    pub(crate) skills: Vec<SkillSummary>,
    /// The number of the project's skills in untrusted folders.
    pub(crate) untrusted_skills: usize,
}

/// Reads the surroundings of folders.
pub(crate) struct Surroundings {
    skills: Arc<Skills>,
    user_home: PathBuf,
}

impl Surroundings {
    pub(crate) fn new(skills: Arc<Skills>, user_home: Option<PathBuf>) -> Self {
        Self {
            skills,
            user_home: user_home.unwrap_or_else(|| PathBuf::from("/")),
        }
    }

    /// The present surroundings of a folder.
    pub(crate) async fn of(&self, cwd: &Path) -> Look {
        let (skills, home) = (Arc::clone(&self.skills), self.user_home.clone());
        let folder = cwd.to_owned();
        let look = move || look(&skills, &home, &folder);
        let looked = self.skills.files.look(&cwd.to_string_lossy(), look).await;
        looked.unwrap_or_else(|why| {
            tracing::warn!(cwd = %cwd.display(), why, "a run continues without project and skills");
            Look::default()
        })
    }
}

/// Reads project and skills. Blocks.
fn look(skills: &Skills, home: &Path, cwd: &Path) -> Look {
    let trust = skills.trust.load().unwrap_or_else(|error| {
        tracing::warn!(%error, "the trust file cannot be read; nothing is trusted");
        crabtalk_config::skills::Trust::default()
    });
    let listing = skills.library.list(Some(cwd), &|_| true);
    Look {
        project: Project::collect(cwd, home, &|at| trust.reaches(at)),
        skills: listing.skills,
        untrusted_skills: listing.untrusted,
    }
}
