//! The agent's screen.

use std::io::Write;

/// Lines of the conversation that are shown.
const SHOWN: usize = 30;

/// Longest draft that is drawn in full, in bytes.
const LONGEST_DRAFT: usize = 400;

/// The part below the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Below {
    Composer,
    /// A prompt for this command.
    Prompt(String),
    /// An unknown prompt.
    Odd,
    /// A question before the composer appears.
    Dialog,
}

#[derive(Debug, Default)]
pub(super) struct Screen {
    said: Vec<String>,
    pub(super) draft: String,
    pub(super) status: String,
}

impl Screen {
    pub(super) fn say(&mut self, text: &str) {
        self.said.extend(text.lines().map(str::to_owned));
        let excess = self.said.len().saturating_sub(SHOWN);
        self.said.drain(..excess);
    }

    pub(super) fn wipe(&mut self) {
        self.said.clear();
    }

    pub(super) fn draw(&self, below: &Below) {
        let mut text = String::from("\x1b[?25l\x1b[H\x1b[2J");
        let mut line = |line: &str| {
            text.push_str(line);
            text.push_str("\r\n");
        };
        for said in &self.said {
            line(said);
        }
        line("");
        let mut end = "";
        match below {
            Below::Composer => {
                let draft = match self.draft.len() > LONGEST_DRAFT {
                    true => format!("[pasted {} bytes]", self.draft.len()),
                    false => self.draft.replace('\n', "\r\n"),
                };
                line(&format!("-- fake {}", self.status));
                // The cursor stays after the typed text.
                text.push_str(&format!("> {draft}\x1b[?25h"));
            }
            Below::Prompt(command) => {
                line("Allow this command?");
                line("");
                line(&format!("  $ {command}"));
                line("");
                line("* 1. Yes");
                end = "  2. No (esc)";
            }
            Below::Odd => {
                line("Which colour shall it be?");
                end = "* 1. Blue";
            }
            Below::Dialog => end = "Do you trust this folder? (no composer yet)",
        }
        text.push_str(end);
        put(&text);
    }
}

/// Writes to the terminal, at once.
pub(super) fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    // If the terminal is gone, a signal ends the agent.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
