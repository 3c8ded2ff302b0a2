//! The agent's behaviour.

use super::keys::{Key, Keys};
use super::screen::{Below, Screen, put};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Environment variable with the agent's folder; without it [`enter`] does nothing.
pub const FOLDER: &str = "FAKE_AGENT";

/// Interval of checks of its files and, when it spins, of redraws.
const TICK: Duration = Duration::from_millis(10);

/// Pause between two bells, so that a terminal reports both.
const BETWEEN_BELLS: Duration = Duration::from_millis(60);

/// The tokens of a new context.
const FRESH_TOKENS: u64 = 1000;

/// Maximum pieces of queued input.
const PIECES: usize = 64;

const BELL: &str = "\x07";

/// The reaction to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// Answers with a text.
    Answers(String),
    /// Answers, and reports this many tokens in its context from now on.
    Counts(u64, String),
    /// Asks for approval, and answers depending on it.
    Asks {
        /// The command to approve.
        command: String,
        /// The answer if it was allowed.
        done: String,
        /// The answer if it was refused.
        refused: String,
    },
    /// Rings, and then does nothing.
    Hangs,
    /// Ends with this status.
    Crashes(i32),
}

/// A test's function from messages to reactions.
type Brain = fn(&str) -> Does;

/// Like [`enter`], for an agent whose reactions come from `brain` instead of
/// directives.
pub fn enter_as(brain: fn(&str) -> Does) {
    begin(Some(brain));
}

/// Runs the agent and ends the process, if this process was started as one; otherwise
/// returns at once. A test calls it, so that the test program can be started
/// again as the agent.
pub fn enter() {
    begin(None);
}

fn begin(brain: Option<Brain>) {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let status = Agent::new(Path::new(&folder), brain).play();
    put("\x1b[?2004l\x1b[?25h\x1b[?1049l");
    std::process::exit(status);
}

/// The current activity.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    Nothing,
    Waiting {
        spins: bool,
    },
    Asking {
        command: String,
        vanishes: bool,
        /// The answers after permission and after refusal; without the latter, a refusal cancels the
        /// turn.
        then: (String, Option<String>),
    },
    Odd,
}

struct Agent {
    brain: Option<Brain>,
    folder: PathBuf,
    transcript: PathBuf,
    screen: Screen,
    keys: Keys,
    doing: Doing,
    /// Whether a completion was opened or closed by Enter.
    completed: bool,
    deaf: bool,
    spin: usize,
    sessions: usize,
    tokens: u64,
}

impl Agent {
    fn new(folder: &Path, brain: Option<Brain>) -> Self {
        let session = std::env::var("FAKE_SESSION").unwrap_or_default();
        let mut agent = Self {
            brain,
            folder: folder.to_owned(),
            transcript: folder.join("sessions").join(format!("{session}.jsonl")),
            screen: Screen::default(),
            keys: Keys::default(),
            doing: Doing::Nothing,
            completed: false,
            deaf: false,
            spin: 0,
            sessions: 0,
            tokens: FRESH_TOKENS,
        };
        if session.is_empty() || !agent.transcript.exists() {
            agent.begin_session();
        }
        agent
    }

    /// Creates a new transcript at the first message.
    fn begin_session(&mut self) {
        self.sessions += 1;
        self.tokens = FRESH_TOKENS;
        let name = format!("s{}-{}", std::process::id(), self.sessions);
        self.transcript = self.folder.join("sessions").join(format!("{name}.jsonl"));
    }

    fn play(mut self) -> i32 {
        let input = read();
        put("\x1b[?1049h\x1b[?2004h");
        while self.has("dialog") {
            self.screen.draw(&Below::Dialog);
            std::thread::sleep(TICK);
        }
        self.draw();
        loop {
            match input.recv_timeout(TICK) {
                Ok(bytes) if self.deaf => drop(bytes),
                Ok(bytes) => {
                    for key in self.keys.take(&bytes) {
                        self.note(&key);
                        if let Some(status) = self.press(key) {
                            return status;
                        }
                    }
                    self.draw();
                }
                Err(RecvTimeoutError::Timeout) => self.tick(),
                Err(RecvTimeoutError::Disconnected) => return 0,
            }
        }
    }

    fn has(&self, file: &str) -> bool {
        self.folder.join(file).exists()
    }

    /// Removes a file; returns whether it existed.
    fn goes(&self) -> bool {
        std::fs::remove_file(self.folder.join("go")).is_ok()
    }

    fn tick(&mut self) {
        match self.doing.clone() {
            Doing::Waiting { spins } => {
                if spins {
                    self.spin += 1;
                    self.screen.status = format!("working {}", self.spin);
                    self.draw();
                }
                if self.goes() {
                    self.end("went on");
                }
            }
            Doing::Asking { vanishes: true, .. } if self.goes() => self.end("withdrawn"),
            Doing::Asking { .. } | Doing::Odd | Doing::Nothing => {}
        }
    }

    fn draw(&self) {
        self.screen.draw(&match &self.doing {
            Doing::Asking { command, .. } => Below::Prompt(command.clone()),
            Doing::Odd => Below::Odd,
            Doing::Nothing | Doing::Waiting { .. } => Below::Composer,
        });
    }

    fn note(&self, key: &Key) {
        let line = match key {
            Key::Paste(text) => format!("paste {}", text.len()),
            Key::Text(text) => format!("text {text}"),
            Key::Enter | Key::Escape | Key::Clear | Key::Interrupt => format!("{key:?}"),
        };
        append(&self.folder.join("keys"), &line);
    }

    /// Handles a key; returns the status if it ends the agent.
    fn press(&mut self, key: Key) -> Option<i32> {
        match (self.doing.clone(), key) {
            (Doing::Asking { command, then, .. }, Key::Text(text)) if text == "1" => {
                append(&self.folder.join("ran"), &command);
                self.result(false);
                self.end(&then.0);
            }
            (
                Doing::Asking {
                    then: (_, Some(refused)),
                    ..
                },
                Key::Escape,
            ) => {
                self.result(true);
                self.end(&refused);
            }
            (Doing::Asking { .. } | Doing::Waiting { .. }, Key::Escape) => {
                self.result(true);
                self.doing = Doing::Nothing;
                self.message(&json!({"role": "assistant", "content": [], "stopReason": "aborted"}));
                self.screen.say("cancelled");
            }
            (Doing::Odd, Key::Text(_)) => self.end("coloured"),
            (_, Key::Text(text) | Key::Paste(text)) => {
                self.screen.draft.push_str(&text);
                self.completed = false;
            }
            (_, Key::Clear) => self.screen.draft.clear(),
            (Doing::Nothing, Key::Enter) => return self.enter(),
            (_, Key::Enter | Key::Escape | Key::Interrupt) => {}
        }
        None
    }

    fn enter(&mut self) -> Option<i32> {
        let last = self
            .screen
            .draft
            .split_whitespace()
            .next_back()
            .unwrap_or_default();
        if last.starts_with('@') && !self.completed {
            self.completed = true;
            return None;
        }
        let draft = std::mem::take(&mut self.screen.draft);
        match draft.trim() {
            "" => None,
            "/quit" => Some(0),
            "/compact" => {
                self.line(&json!({"type": "compaction", "summary": "short"}));
                self.screen.say("Compacted.");
                None
            }
            "/new" => {
                self.begin_session();
                self.screen.wipe();
                self.screen.say("New session started");
                None
            }
            _ => self.take(&draft),
        }
    }

    /// Handles a message.
    fn take(&mut self, text: &str) -> Option<i32> {
        self.screen
            .say(&format!("you: {}", text.lines().next().unwrap_or_default()));
        let content = json!([{"type": "text", "text": text}]);
        self.message(&json!({"role": "user", "content": content}));
        if let Some(brain) = self.brain {
            return self.does(brain(text));
        }
        let (name, argument) = directive(text);
        match name {
            "say" => self.end(argument),
            "tokens" => {
                self.tokens = argument.parse().unwrap_or(FRESH_TOKENS);
                self.end("counted");
            }
            "two" => {
                self.call("c0", "touch hidden");
                self.ask(argument, name, ("done".into(), None));
            }
            "tool" | "mute" | "vanish" => self.ask(argument, name, ("done".into(), None)),
            "odd" => {
                self.doing = Doing::Odd;
                self.draw();
                put(BELL);
            }
            "old" => {
                let old =
                    format!("Allow this command?\n\n  $ {argument}\n\n* 1. Yes\n  2. No (esc)");
                self.screen.say(&old);
                self.screen.say("one\ntwo\nthree");
                self.end("that was an old one");
            }
            "wait" | "spin" => {
                let spins = name == "spin";
                self.doing = Doing::Waiting { spins };
            }
            "hang" | "deaf" => {
                self.doing = Doing::Waiting { spins: false };
                self.deaf = name == "deaf";
            }
            "bells" => {
                for _ in 1..argument.parse::<u32>().unwrap_or(1) {
                    put(BELL);
                    std::thread::sleep(BETWEEN_BELLS);
                }
                self.end("rung");
            }
            "title" => {
                put("\x1b]0;a title\x07");
                self.answer("titled");
                self.doing = Doing::Nothing;
            }
            "crash" => return Some(argument.parse().unwrap_or(1)),
            "child" => {
                let mut child = std::process::Command::new("setsid");
                let child = child.args(["sleep", "1000"]).spawn();
                let pid = child.map_or(0, |child| child.id());
                self.end(&format!("pid {pid}"));
            }
            _ => self.end(&format!("ok: {}", text.lines().next().unwrap_or_default())),
        }
        None
    }

    fn does(&mut self, does: Does) -> Option<i32> {
        match does {
            Does::Answers(text) => self.end(&text),
            Does::Counts(tokens, text) => {
                self.tokens = tokens;
                self.end(&text);
            }
            Does::Asks {
                command,
                done,
                refused,
            } => self.ask(&command, "tool", (done, Some(refused))),
            Does::Hangs => {
                self.doing = Doing::Waiting { spins: false };
                self.draw();
                put(BELL);
            }
            Does::Crashes(status) => return Some(status),
        }
        None
    }

    fn call(&self, id: &str, command: &str) {
        self.message(&json!({
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I will run it."},
                {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}},
            ],
            "stopReason": "toolUse",
        }));
    }

    fn ask(&mut self, command: &str, how: &str, then: (String, Option<String>)) {
        self.call("c1", command);
        self.doing = Doing::Asking {
            command: command.to_owned(),
            vanishes: how == "vanish",
            then,
        };
        self.draw();
        if how != "mute" {
            put(BELL);
        }
    }

    fn result(&self, is_error: bool) {
        if matches!(self.doing, Doing::Asking { .. }) {
            self.message(&json!({"role": "toolResult", "toolCallId": "c1", "isError": is_error}));
        }
    }

    /// Answers, ends the turn, and rings.
    fn end(&mut self, text: &str) {
        self.answer(text);
        self.doing = Doing::Nothing;
        self.screen.status.clear();
        self.draw();
        put(BELL);
    }

    fn answer(&mut self, text: &str) {
        self.screen.say(text);
        self.message(&json!({
            "role": "assistant",
            "content": [{"type": "text", "text": text}],
            "usage": {"totalTokens": self.tokens, "contextWindow": 100_000},
            "stopReason": "stop",
        }));
    }

    fn message(&self, message: &Value) {
        let line = json!({"type": "message", "message": message});
        if message["role"] == "user" && self.has("late") {
            append(&self.held(), &line.to_string());
            return;
        }
        if let Ok(held) = std::fs::read_to_string(self.held()) {
            let _ = std::fs::remove_file(self.held());
            for line in held.lines() {
                self.line(&serde_json::from_str(line).unwrap_or_default());
            }
        }
        self.line(&line);
    }

    fn line(&self, line: &Value) {
        if !self.transcript.exists() {
            let name = self.transcript.file_stem().unwrap_or_default();
            let folder = std::env::current_dir().unwrap_or_default();
            let head = json!({"type": "session", "id": name.to_string_lossy(), "cwd": folder});
            if let Some(folder) = self.transcript.parent() {
                let _ = std::fs::create_dir_all(folder);
            }
            append(&self.transcript, &head.to_string());
        }
        append(&self.transcript, &line.to_string());
    }

    /// The file of a delayed line, which is written with the next one.
    fn held(&self) -> PathBuf {
        self.folder.join("held")
    }
}

/// The first `[name:argument]` of a message.
fn directive(text: &str) -> (&str, &str) {
    let inner = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let Some((inner, _)) = inner else {
        return ("", "");
    };
    inner.split_once(':').unwrap_or((inner, ""))
}

fn append(path: &Path, line: &str) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    if let Ok(mut file) = file {
        // A test that needs this line fails without it.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Reads the input in pieces.
fn read() -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(PIECES);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
