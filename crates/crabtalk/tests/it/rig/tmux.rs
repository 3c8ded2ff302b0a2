//! A terminal in which the client runs.

use super::command::CRABTALK;
use super::wait::{LIMIT, eventually};
use super::{TestEnv, picture};
use crabtalk_testkit::Terminal;
use rustix::process::Pid;
use std::ops::Deref;
use std::time::Duration;

/// Interval of reads of the screen, each of which starts a program.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A part of the line below the answer of a finished run.
pub(crate) const OVER: &str = " read, ";

/// The chat, as a shell line.
pub(crate) const CHAT: &str = "\"$CRABTALK\"";

/// The text of the composer while nothing runs.
pub(crate) const IDLE: &str = "type a message";

/// The text of an approval's frame once it accepts an answer.
pub(crate) const CHOICES: &str = "y allow once";

/// Environment variable that makes the tests write the pictures and tables of the documents.
const UPDATE: &str = "CRABTALK_UPDATE_DOCS";

/// A terminal whose screen can be waited for.
pub(crate) struct Tmux(Terminal);

impl Tmux {
    /// Opens a terminal that runs a shell line; `$CRABTALK` is the program.
    pub(crate) fn open(env: &TestEnv, line: &str) -> Self {
        Self::sized(env, line, 150, 50)
    }

    /// Opens a terminal with this many columns and rows.
    pub(crate) fn sized(env: &TestEnv, line: &str, columns: usize, rows: usize) -> Self {
        let line = format!(
            "trap : INT; cd '{}' && export {} CRABTALK='{CRABTALK}' && {line}; echo \"ended with $?\"",
            env.work.display(),
            env.exports()
        );
        Self(Terminal::open(env.root(), &line, (columns, rows)))
    }

    /// The contents of a file of terminal output once it contains a text.
    pub(crate) async fn recorded(&self, file: &std::path::Path, text: &str) -> String {
        eventually("what was shown, in a file", async || {
            // Another program writes it and may not have started.
            let said = std::fs::read_to_string(file).ok()?;
            said.contains(text).then_some(said)
        })
        .await
    }

    /// The current screen and its scrollback.
    pub(crate) fn screen(&self) -> String {
        self.0.screen(true)
    }

    /// Waits until the screen and its scrollback show a text this many times. Use only
    /// text that the program does not erase.
    pub(crate) async fn shows(&self, text: &str, times: usize) -> String {
        let mut screen = String::new();
        let look = async {
            loop {
                screen = self.screen();
                if screen.matches(text).count() >= times {
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let seen = tokio::time::timeout(LIMIT, look).await;
        assert!(
            seen.is_ok(),
            "no {text:?}, {times} times, on the screen:\n{screen}"
        );
        screen
    }

    /// Updates a picture of the documents with the current screen.
    pub(crate) fn picture(&self, env: &TestEnv, name: &str, title: &str) {
        if std::env::var_os(UPDATE).is_none() {
            return;
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures");
        let screen = self.tmux(&["capture-pane", "-e", "-p"]);
        let home = env.user_home.display().to_string();
        let columns = self.tmux(&["display-message", "-p", "#{pane_width}"]);
        picture::write(
            &std::path::Path::new(folder).join(format!("{name}.svg")),
            title,
            columns.trim().parse().unwrap(),
            &screen.replace(&home, "/home/me"),
        );
    }

    /// Pastes a text as the terminal does, between brackets.
    pub(crate) fn pastes(&self, text: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        self.tmux(&["load-buffer", &file.path().display().to_string()]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    /// The process that runs in the shell line.
    pub(crate) async fn program(&self) -> Pid {
        eventually("a program in the terminal", async || {
            let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
            let shell = shell.trim();
            let path = format!("/proc/{shell}/task/{shell}/children");
            let children = std::fs::read_to_string(path).ok()?;
            Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
        })
        .await
    }

    /// Types text and Enter.
    pub(crate) fn types(&self, text: &str) {
        if !text.is_empty() {
            self.types_half(text);
        }
        self.key("Enter");
    }

    /// Types text without Enter.
    pub(crate) fn types_half(&self, text: &str) {
        self.0.types(text);
    }

    /// Sends bytes to the program like the terminal itself, for example a reply.
    pub(crate) fn answers(&self, bytes: &str) {
        let bytes: Vec<String> = bytes.bytes().map(|byte| format!("{byte:02x}")).collect();
        let bytes = bytes.iter().map(String::as_str);
        let all: Vec<&str> = ["send-keys", "-H"].into_iter().chain(bytes).collect();
        self.tmux(&all);
    }
}

impl Deref for Tmux {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.0
    }
}
