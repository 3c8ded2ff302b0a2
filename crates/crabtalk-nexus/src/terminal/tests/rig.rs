//! A separate tmux server for a test, with agents in it.

use crate::backend::{
    Backend, Event, Events, Evidence, Launch, Mark, Prompt, Submission, Submitted, Turn, What,
};
use crate::terminal::kind::Kinds;
use crate::terminal::{Settings, Spec, Terminal, Terminals};
use crabtalk_testkit::fake_agent;
use crabtalk_testkit::tools::has_tools;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Timeout of expected events.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs as the agent in a terminal when [`Rig`] starts it; as a test it does nothing.
#[test]
fn plays_the_agent() {
    fake_agent::enter();
}

pub(super) struct Rig {
    pub(super) terminals: Terminals,
    pub(super) folder: tempfile::TempDir,
}

impl Rig {
    pub(super) async fn open(test: &str) -> Option<Self> {
        if !has_tools(test, &["tmux"]) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let terminals = Terminals::open(settings(folder.path())).await.unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Some(Self { terminals, folder })
    }

    /// Creates an agent without launching it.
    pub(super) fn agent(&self, name: &str) -> Agent {
        Agent::new(&self.terminals, self.folder.path(), name, "")
    }

    /// Creates an agent that accepts messages.
    pub(super) async fn ready(&self, name: &str) -> Agent {
        let mut agent = self.agent(name);
        agent.launch(Launch::Fresh).await;
        agent
    }

    /// Runs a tmux command as a person would.
    pub(super) fn tmux(&self, arguments: &[&str]) -> String {
        tmux(self.folder.path(), arguments)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

pub(super) fn settings(folder: &Path) -> Settings {
    let mut settings = Settings::new(folder, folder.join("state"));
    settings.socket = Some(folder.join("tmux"));
    settings
}

pub(super) fn tmux(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tmux");
    let command = command.arg("-S").arg(folder.join("tmux")).args(arguments);
    let output = command.env_remove("TMUX").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A scripted agent and its events.
pub(super) struct Agent {
    pub(super) port: Terminal,
    events: Events,
    pub(super) told: Vec<Event>,
    /// Indices of the events that were waited for.
    taken: Vec<usize>,
    pub(super) folder: PathBuf,
    pub(super) session: String,
}

impl Agent {
    /// Creates an agent with changes of its kind, as TOML.
    pub(super) fn new(terminals: &Terminals, root: &Path, name: &str, changes: &str) -> Self {
        let folder = root.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut kinds: toml::Table = format!("[fake]\n{}", indented(fake_agent::KIND))
            .parse()
            .unwrap();
        kinds.extend(changes.parse::<toml::Table>().unwrap());
        let kinds = Kinds::new(&kinds).unwrap();
        let program = std::env::current_exe().unwrap().display().to_string();
        let folder = folder.display().to_string();
        let env = [
            ("FAKE_AGENT", folder.as_str()),
            ("FAKE_PROGRAM", &program),
            ("FAKE_TEST", "terminal::tests::rig::plays_the_agent"),
        ];
        let kind = if changes.is_empty() {
            "fake"
        } else {
            "changed"
        };
        Self::of_kind(terminals, root, name, kinds.get(kind).unwrap(), &env)
    }

    /// Creates an agent of a kind with a separate home.
    pub(super) fn of_kind(
        terminals: &Terminals,
        root: &Path,
        name: &str,
        kind: &crate::terminal::Kind,
        env: &[(&str, &str)],
    ) -> Self {
        let folder = root.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let home = ("HOME", folder.to_str().unwrap());
        let env = env.iter().copied().chain([home]);
        let port = terminals.agent(Spec {
            name: name.to_owned(),
            kind: kind.clone(),
            folder: root.join("work"),
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            sandbox: None,
            marker: None,
        });
        Self {
            events: port.events(),
            port,
            told: Vec::new(),
            taken: Vec::new(),
            folder,
            session: String::new(),
        }
    }

    pub(super) async fn launch(&mut self, launch: Launch) -> bool {
        self.port.launch(launch).await.unwrap();
        let (session, busy) = self
            .until("Ready", |what| match what {
                What::Ready { session, busy } => Some((session.clone(), *busy)),
                _ => None,
            })
            .await;
        self.session = session;
        busy
    }

    /// Submits a message without waiting for its arrival.
    pub(super) async fn submit(&self, id: &str, text: &str) -> Submitted {
        let mark = self.port.mark().await.unwrap();
        self.submit_again(id, text, mark, false).await
    }

    pub(super) async fn submit_again(
        &self,
        id: &str,
        text: &str,
        mark: Mark,
        again: bool,
    ) -> Submitted {
        let message = Submission {
            id: id.to_owned(),
            text: text.to_owned(),
            mark,
            again,
        };
        self.port.submit(message).await.unwrap()
    }

    /// Submits a message and waits for its arrival.
    pub(super) async fn say(&mut self, text: &str) {
        let id = format!("m{}", self.told.len());
        let begin = Instant::now();
        let sent = loop {
            // Retries `NotNow`, like a supervisor.
            match self.submit(&id, text).await {
                Submitted::NotNow(_) if begin.elapsed() < PATIENCE => {}
                other => break other,
            }
        };
        assert!(
            matches!(sent, Submitted::Sent(_)),
            "{sent:?}: {}",
            self.screen().await
        );
        self.until("Seen", |what| match what {
            What::Seen { id: seen } => (*seen == id).then_some(()),
            _ => None,
        })
        .await;
    }

    pub(super) async fn ended(&mut self) -> Turn {
        self.until("TurnEnded", |what| match what {
            What::TurnEnded(turn) => Some(turn.clone()),
            _ => None,
        })
        .await
    }

    pub(super) async fn prompt(&mut self) -> Prompt {
        self.until("Prompt", |what| match what {
            What::Prompt(prompt) => Some(prompt.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the first matching event that was not waited for yet.
    pub(super) async fn until<T>(&mut self, name: &str, find: impl Fn(&What) -> Option<T>) -> T {
        let wait = async {
            let mut at = 0;
            loop {
                while at >= self.told.len() {
                    let event = self.events.next().await.expect("it goes on telling");
                    if let What::Session { session } = &event.what {
                        self.session.clone_from(session);
                    }
                    self.told.push(event);
                }
                let found = find(&self.told[at].what).filter(|_| !self.taken.contains(&at));
                if let Some(found) = found {
                    self.taken.push(at);
                    return found;
                }
                at += 1;
            }
        };
        let Ok(found) = tokio::time::timeout(PATIENCE, wait).await else {
            panic!("no {name}; told: {:#?}\n{}", self.told, self.screen().await);
        };
        found
    }

    /// The events so far, without waiting.
    pub(super) fn drain(&mut self) -> &[Event] {
        use futures_util::FutureExt;
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.told.push(event);
        }
        &self.told
    }

    pub(super) fn evidence(&self, is: impl Fn(&What) -> bool) -> &Evidence {
        &self
            .told
            .iter()
            .rfind(|event| is(&event.what))
            .unwrap()
            .evidence
    }

    pub(super) fn count(&mut self, is: impl Fn(&What) -> bool) -> usize {
        self.drain().iter().filter(|event| is(&event.what)).count()
    }

    /// The keys that the agent received, one per line.
    pub(super) fn keys(&self) -> Vec<String> {
        lines(&self.folder.join("keys"))
    }

    /// The commands that the agent ran.
    pub(super) fn ran(&self) -> Vec<String> {
        lines(&self.folder.join("ran"))
    }

    /// Lets the agent continue.
    pub(super) fn go(&self) {
        std::fs::write(self.folder.join("go"), "").unwrap();
    }

    pub(super) async fn screen(&self) -> String {
        self.port
            .look()
            .await
            .map_or_else(|e| e.to_string(), |look| look.text)
    }

    /// The texts of users in all its transcripts.
    pub(super) fn users(&self) -> Vec<String> {
        let sessions = std::fs::read_dir(self.folder.join("sessions"));
        let files = sessions
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        let lines = files.flat_map(|file| lines(&file));
        let messages = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
        messages
            .filter(|line| line["message"]["role"] == "user")
            .map(|line| {
                line["message"]["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }
}

/// Indents the tables of a kind below the kind's own.
fn indented(kind: &str) -> String {
    let line = |line: &str| match line.strip_prefix('[') {
        Some(rest) if line.starts_with("[[") => format!("[[fake.{}\n", &rest[1..]),
        Some(rest) => format!("[fake.{rest}\n"),
        None => format!("{line}\n"),
    };
    kind.lines().map(line).collect()
}

pub(super) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until a condition holds.
pub(super) async fn eventually(name: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "never: {name}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
