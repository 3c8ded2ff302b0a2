//! An agent in a terminal that does as its messages say: this test program
//! again, in a window of tmux.

use crabtalk_nexus::grammar::{self, Message};
use crabtalk_testkit::fake_agent::{self, Does, FOLDER};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another one may have git's lock.
const LOCKED: Duration = Duration::from_secs(240);

/// What its context holds when it has to be compressed.
const MANY_TOKENS: u64 = 70_000;

/// Lies in its folder where it does not answer the next BOOTSTRAP.
pub(super) const DUMB: &str = "dumb";

/// No test by itself: the agent that NEXUS starts in a terminal.
#[test]
fn plays_an_agent() {
    fake_agent::enter_as(brain);
}

fn brain(text: &str) -> Does {
    let message = grammar::read_one(text).expect("NEXUS writes messages");
    let from = message.header.from.to_string();
    let me = message.header.to[0].clone();
    let topic = message.header.topic.as_ref().map(ToString::to_string);
    let topic = topic.expect("each message has a topic");
    let says = |to: &str, topic: &str, text: &str| format!("@{me} → @{to} [{topic}]: {text}");
    match topic.as_str() {
        "BOOTSTRAP" if is_dumb() => Does::Hangs,
        "BOOTSTRAP" => Does::Answers(says(
            "NEXUS",
            &topic,
            "Identity confirmed. Context loaded. Ready",
        )),
        "COMPRESSION" => {
            consolidate(&me.folder());
            let ready = "Context consolidated. Changes committed. Ready for compression.";
            Does::Answers(says("NEXUS", &topic, ready))
        }
        topic if topic.starts_with("RE-") => {
            Does::Answers(says("ADMIN", &format!("SEEN-{topic}"), "heard"))
        }
        topic if topic.starts_with("Q-") => {
            Does::Answers(says(&from, &format!("RE-{topic}"), "well"))
        }
        topic => task(&message, topic, &|text| says(&from, topic, text), &says),
    }
}

/// Whether it says nothing this one time.
fn is_dumb() -> bool {
    let folder = std::env::var_os(FOLDER).unwrap_or_default();
    std::fs::remove_file(Path::new(&folder).join(DUMB)).is_ok()
}

fn task(
    message: &Message,
    topic: &str,
    answers: &dyn Fn(&str) -> String,
    says: &dyn Fn(&str, &str, &str) -> String,
) -> Does {
    let (word, rest) = message.body.split_once(' ').unwrap_or((&message.body, ""));
    match word {
        "prompt" => Does::Asks {
            command: rest.to_owned(),
            done: answers("done"),
            refused: answers("failed: refused"),
        },
        "ask" => {
            let question = says(rest, &format!("Q-{topic}"), &format!("what of {topic}?"));
            Does::Answers(format!("{question}\n{}", answers("done: asked")))
        }
        "hang" => Does::Hangs,
        "die" => Does::Crashes(11),
        "learn" => Does::Counts(MANY_TOKENS, answers("done")),
        _ => Does::Answers(answers("done")),
    }
}

/// Writes down what it knows, and commits its own folder.
fn consolidate(own: &str) {
    let path = Path::new(own).join("context.md");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(path, format!("{known}More.\n")).unwrap();
    let begin = Instant::now();
    loop {
        let git = |words: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            git.args(words)
                .output()
                .is_ok_and(|done| done.status.success())
        };
        let message = "consolidated";
        if git(&["add", "--", own]) && git(&["commit", "-qm", message, "--only", "--", own]) {
            return;
        }
        // Another one commits at this moment.
        assert!(begin.elapsed() < LOCKED, "git goes on failing");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What such an agent did, by what it left in its folder.
pub(super) struct Player(PathBuf);

impl Player {
    pub(super) fn new(folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Its section in the configuration of the team.
    pub(super) fn section(&self, name: &str) -> String {
        let folder = self.0.display().to_string();
        let program = std::env::current_exe().unwrap().display().to_string();
        let test = "nexus::player::plays_an_agent";
        format!(
            "[agent.{name}]\nkind = \"fake\"\n[agent.{name}.env]\nHOME = {folder:?}\n\
             {FOLDER} = {folder:?}\nFAKE_PROGRAM = {program:?}\nFAKE_TEST = {test:?}\n"
        )
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The keys that answered its prompts.
    pub(super) fn pressed(&self) -> (usize, usize) {
        let keys = self.lines("keys");
        let count = |key: &str| keys.iter().filter(|line| *line == key).count();
        (count("text 1"), count("Escape"))
    }

    /// The commands that it ran.
    pub(super) fn ran(&self) -> Vec<String> {
        self.lines("ran")
    }

    /// The transcripts of its sessions.
    fn sessions(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.0.join("sessions")).into_iter();
        let files = files.flatten().map(|file| file.unwrap().path());
        files
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect()
    }

    /// How many sessions it had.
    pub(super) fn lives(&self) -> usize {
        self.sessions().len()
    }

    /// What was said to it, in all sessions.
    pub(super) fn heard(&self) -> Vec<String> {
        let sessions = self.sessions();
        let lines = sessions.iter().flat_map(|text| text.lines());
        let messages = lines.map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["message"].clone()
        });
        let users = messages.filter(|message| message["role"] == "user");
        users
            .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    }
}
