//! What lies around the folder that a run works in: a project's instructions
//! and the skills in reach.
//!
//! Invariant: what is kept is what reading it again would give; where files
//! cannot tell that, everything is read for every run.

use crate::skills::Skills;
use crabtalk_fingerprint::{Fingerprint, Trace};
use crabtalk_memory::Project;
use crabtalk_skills::Summary;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// Folders that are kept; more are worked in on few machines at a time.
const MAX_KEPT: usize = 64;

/// What one look found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The project's instructions, as far as their folders are trusted.
    pub(crate) project: Project,
    /// All skills in reach, before scope.
    pub(crate) skills: Vec<Summary>,
}

/// Looks around, as seldom as it can.
pub(crate) struct Surroundings {
    skills: Arc<Skills>,
    user_home: PathBuf,
    kept: Mutex<HashMap<PathBuf, (Fingerprint, Arc<Look>)>>,
}

impl Surroundings {
    pub(crate) fn new(skills: Arc<Skills>, user_home: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            skills,
            user_home: user_home.unwrap_or_else(|| PathBuf::from("/")),
            kept: Mutex::default(),
        })
    }

    /// What there is around a folder now.
    pub(crate) async fn of(self: &Arc<Self>, cwd: &Path) -> Arc<Look> {
        if let Some(look) = self.known(cwd) {
            return look;
        }
        let (this, cwd) = (Arc::clone(self), cwd.to_owned());
        let looked = tokio::task::spawn_blocking(move || this.look(&cwd));
        looked.await.unwrap_or_default()
    }

    fn known(&self, cwd: &Path) -> Option<Arc<Look>> {
        let kept = self.kept();
        let (fingerprint, look) = kept.get(cwd)?;
        fingerprint.holds().then(|| Arc::clone(look))
    }

    fn look(&self, cwd: &Path) -> Arc<Look> {
        let begun = SystemTime::now();
        let mut traces = Project::traces(cwd, &self.user_home);
        traces.push(Trace::Content(self.skills.trust().path().to_owned()));
        let trust = self.skills.trust().load().unwrap_or_else(|error| {
            tracing::warn!(%error, "the trust file cannot be read; nothing is trusted");
            crabtalk_skills::Trust::default()
        });
        // Trust reaches down: a folder's owner speaks for what is in it.
        let trusts = |at: &Path| at.ancestors().any(|above| trust.trusts_folder(above));
        let project = Project::collect(cwd, &self.user_home, &trusts);
        let listing = self.skills.library().list(Some(cwd), &|_| true);
        traces.extend(listing.looked_at.into_iter().map(Trace::Content));
        let skills = listing.skills;
        let look = Arc::new(Look { project, skills });
        let fingerprint = Fingerprint::take(traces, begun);
        let mut kept = self.kept();
        kept.remove(cwd);
        if let Some(fingerprint) = fingerprint {
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(cwd.to_owned(), (fingerprint, Arc::clone(&look)));
        }
        look
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<PathBuf, (Fingerprint, Arc<Look>)>> {
        self.kept.lock().expect("nothing panics under it")
    }
}
