//! The surroundings of a run's folder: project instructions and skills in reach.
//!
//! Invariants: a cached result equals a new read; if fingerprints cannot prove that, the
//! files are read for every run; a hanging disk delays a run by some seconds, and the run
//! continues without them.

use crate::skills::Skills;
use crabtalk_files::{Fingerprint, Trace};
use crabtalk_memory::Project;
use crabtalk_skills::SkillSummary;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// Most cached folders.
const MAX_KEPT: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The project's instructions in trusted folders.
    pub(crate) project: Project,
    /// All skills in reach, before scope.
    pub(crate) skills: Vec<SkillSummary>,
    /// The number of the project's skills in untrusted folders.
    pub(crate) untrusted_skills: usize,
}

/// Looks around, as seldom as it can.
pub(crate) struct Surroundings {
    skills: Arc<Skills>,
    user_home: PathBuf,
    kept: Mutex<HashMap<PathBuf, Kept>>,
}

/// What one look found, of which folders of skills, and while what holds.
struct Kept {
    folders: u64,
    fingerprint: Fingerprint,
    look: Arc<Look>,
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
        let (this, folder) = (Arc::clone(self), cwd.to_owned());
        let look = move || {
            let known = this.known(&folder);
            known.unwrap_or_else(|| this.look(&folder, SystemTime::now()))
        };
        let looked = self.skills.files().look(&cwd.to_string_lossy(), look).await;
        looked.unwrap_or_else(|why| {
            tracing::warn!(cwd = %cwd.display(), why, "a run goes without project and skills");
            Arc::default()
        })
    }

    /// The cached result, if it is proven to be current. Blocks.
    pub(crate) fn known(&self, cwd: &Path) -> Option<Arc<Look>> {
        let kept = self.kept();
        let known = kept.get(cwd)?;
        let same = known.folders == self.skills.folders() && known.fingerprint.holds();
        same.then(|| Arc::clone(&known.look))
    }

    /// Looks, having `begun` at that moment, and keeps what it found.
    fn look(&self, cwd: &Path, begun: SystemTime) -> Arc<Look> {
        let folders = self.skills.folders();
        let mut traces = Project::traces(cwd, &self.user_home);
        traces.push(Trace::Content(self.skills.trust().path().to_owned()));
        let trust = self.skills.trust().load().unwrap_or_else(|error| {
            tracing::warn!(%error, "the trust file cannot be read; nothing is trusted");
            crabtalk_skills::Trust::default()
        });
        let project = Project::collect(cwd, &self.user_home, &|at| trust.reaches(at));
        let listing = self.skills.library().list(Some(cwd), &|_| true);
        traces.extend(listing.looked_at.into_iter().map(Trace::Content));
        let skills = listing.skills;
        let look = Arc::new(Look {
            project,
            skills,
            untrusted_skills: listing.untrusted,
        });
        let fingerprint = Fingerprint::take(traces, begun);
        let mut kept = self.kept();
        kept.remove(cwd);
        if let Some(fingerprint) = fingerprint {
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            let known = Kept {
                folders,
                fingerprint,
                look: Arc::clone(&look),
            };
            kept.insert(cwd.to_owned(), known);
        }
        look
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<PathBuf, Kept>> {
        self.kept.lock().expect("nothing panics under it")
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crabtalk_config::Config;
    use crabtalk_skills::{Folder, Library, SkillSource, TrustFile};
    use crabtalk_tools::FileWork;
    use std::fs;
    use std::time::Duration;

    const SKILL: &str = "---\nname: fly\ndescription: how to fly\n---\nFlap.\n";

    /// A path below the root, and what happens to it.
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));

    /// A project within a home, with a skill on either side.
    struct World {
        root: tempfile::TempDir,
        around: Arc<Surroundings>,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let at = |path: &str| root.path().join(path);
            for skill in ["config/skills/fly", "home/repo/.crabtalk/skills/dig"] {
                fs::create_dir_all(at(skill)).unwrap();
                let name = skill.rsplit('/').next().unwrap();
                fs::write(at(skill).join("SKILL.md"), SKILL.replace("fly", name)).unwrap();
            }
            fs::create_dir_all(at("state")).unwrap();
            fs::write(at("home/repo/AGENTS.md"), "Be kind.").unwrap();
            let folder = Folder {
                path: at("config/skills"),
                source: SkillSource::Home,
            };
            let (config, _) = Config::parse("", Path::new("config.toml"), &|_| None).unwrap();
            let skills = Skills::new(
                Settings::new(config),
                Library::new(vec![folder]),
                TrustFile::new(at("state/trust.toml")),
                FileWork::default(),
            );
            let around = Surroundings::new(skills, Some(at("home")));
            Self { root, around }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.root.path().join(path)
        }

        fn known(&self) -> bool {
            self.around.known(&self.at("home/repo")).is_some()
        }

        /// Looks as if all that is there had been for a while.
        fn look(&self) -> Arc<Look> {
            let later = SystemTime::now() + Duration::from_secs(1);
            let look = self.around.look(&self.at("home/repo"), later);
            assert!(self.known(), "what stands still is kept");
            look
        }
    }

    #[test]
    fn whatever_a_run_is_told_of_is_looked_at_again_when_it_changed() {
        let world = World::new();
        let look = world.look();
        assert_eq!((look.skills.len(), look.untrusted_skills), (1, 1));
        assert_eq!(look.project.untrusted.len(), 1);
        let changes: &[Change<'_>] = &[
            ("home/repo/AGENTS.md", &|file| {
                fs::write(file, "Be brief.").unwrap()
            }),
            ("home/repo/Crab.md", &|file| {
                fs::write(file, "Pinch.").unwrap()
            }),
            ("home/repo/AGENTS.md", &|file| {
                fs::remove_file(file).unwrap()
            }),
            ("state/trust.toml", &|file| fs::write(file, "").unwrap()),
            ("config/skills/fly/SKILL.md", &|file| {
                fs::write(file, "broken").unwrap()
            }),
            ("config/skills/swim", &|folder| {
                fs::create_dir(folder).unwrap()
            }),
            ("config/skills/swim/SKILL.md", &|file| {
                fs::write(file, SKILL.replace("fly", "swim")).unwrap();
            }),
            ("home/repo/.crabtalk/skills/dig", &|folder| {
                fs::remove_dir_all(folder).unwrap();
            }),
            ("home/repo/.crabtalk", &|folder| {
                fs::remove_dir_all(folder).unwrap()
            }),
            ("home/repo/.crabtalk/skills", &|folder| {
                fs::create_dir_all(folder).unwrap()
            }),
        ];
        for (path, change) in changes {
            change(&world.at(path));
            assert!(!world.known(), "{path}");
            world.look();
        }
        fs::rename(world.at("home/repo"), world.at("home/other")).unwrap();
        fs::create_dir(world.at("home/repo")).unwrap();
        assert!(!world.known(), "another folder in its place");
    }

    #[test]
    fn what_changed_just_now_is_read_by_every_run() {
        let world = World::new();
        // The moment of the change, however long it took to come here.
        let instructions = fs::metadata(world.at("home/repo/AGENTS.md")).unwrap();
        let begun = instructions.modified().unwrap();
        world.around.look(&world.at("home/repo"), begun);
        assert!(!world.known());
    }
}
