//! A team of doubles, a supervisor around them, and ADMIN.

use crate::double::{Double, Line, Shared, Tap, lines};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::backend::Backend;
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::config::Team;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::start::restored;
use crabtalk_nexus::supervisor::{Asked, Supervisor};
use crabtalk_nexus::world::{Answer, Command, TaskState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

pub(crate) struct Rig {
    folder: TempDir,
    config: String,
    pub(crate) clock: Clock,
}

impl Rig {
    pub(crate) fn new(config: &str) -> Self {
        // In memory, where there is such a place: what is tried is order, and a
        // disk would take minutes for its syncs.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Self {
            folder: folder.unwrap(),
            config: config.into(),
            clock: Clock::system(),
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("team")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("nexus")
    }

    fn transcripts(&self) -> PathBuf {
        self.folder.path().join("transcripts")
    }

    pub(crate) fn team(&self) -> Team {
        let root = self.root();
        toml::from_str(&format!("root = {root:?}\n{}", self.config)).unwrap()
    }

    pub(crate) fn supervisor(&self, tap: &Tap) -> Supervisor {
        let team = self.team();
        let of = |name: &Name| {
            let folder = self.transcripts();
            let (clock, tap) = (self.clock.clone(), Arc::clone(tap));
            let double = Double::new(name.as_str(), &folder, clock, tap);
            let backend: Arc<dyn Backend> = Arc::new(Shared(Arc::new(double)));
            (name.clone(), Ok(backend))
        };
        let backends: BTreeMap<_, _> = team.agents.keys().map(of).collect();
        let (world, journal) = restored(team, &self.state()).unwrap();
        Supervisor::new(world, journal, backends, self.clock.clone())
    }

    pub(crate) fn transcript(&self, name: &str) -> Vec<Line> {
        lines(&self.transcripts().join(format!("{name}.jsonl")))
    }

    /// Whether the log has ADMIN's message or task.
    pub(crate) fn is_logged(&self, text: &str) -> bool {
        let text = text.split_once(' ').map_or(text, |(_, rest)| rest);
        let mut found = false;
        crabtalk_nexus::journal::entries(&self.state(), |entry| {
            found |= entry.why.contains("@ADMIN") && entry.why.contains(text);
            !found
        })
        .unwrap();
        found
    }

    /// The messages that an agent got, BOOTSTRAPs left out.
    pub(crate) fn messages(&self, name: &str) -> Vec<String> {
        let of = |line| match line {
            Line::User { text, .. } => Some(text),
            Line::Pressed { .. } | Line::Died { .. } => None,
        };
        let texts = self.transcript(name).into_iter().filter_map(of);
        texts.filter(|text| !text.contains("[BOOTSTRAP]")).collect()
    }
}

pub(crate) async fn say(commands: &mpsc::Sender<Asked>, command: Command) -> Answer {
    let (reply, answer) = oneshot::channel();
    commands.send((command, reply)).await.unwrap();
    answer.await.unwrap()
}

/// Whether all tasks are done and everybody is idle without mail.
pub(crate) async fn is_quiet(commands: &mpsc::Sender<Asked>) -> bool {
    let Answer::Tasks { tasks } = say(commands, Command::Tasks).await else {
        panic!("tasks");
    };
    let done = |task: &TaskState| matches!(task, TaskState::Done { .. });
    let Answer::Status { agents, .. } = say(commands, Command::Status).await else {
        panic!("a status");
    };
    tasks.iter().all(|(_, task)| done(&task.state))
        && agents
            .iter()
            .all(|a| a.state == State::Idle && a.queue == 0)
}
