//! Handling of submitted text.

use super::calls::{self, Pair};
use super::slash::{COMMANDS, Meaning};
use super::{Go, Live};
use crate::chat::message::{Message, message};
use crate::error::Error;
use crate::shown::Shown;
use crabtalk_proto::StreamMsg;
use std::time::Instant;

/// Default number of messages of `/history`.
const HISTORY: u32 = 30;

const KEYS: &str = "| key | does |\n|---|---|\n\
    | Enter | sends; while a run goes on, steers it |\n\
    | Tab, or a leading space | queues the message behind the run |\n\
    | Esc | interrupts the run |\n\
    | Shift+Tab | switches the mode: read-only, ask, auto |\n\
    | Ctrl-C | clears the text, else cancels the run; twice leaves |\n\
    | Ctrl-D | leaves |\n\
    | Ctrl-Z | suspends the chat; `fg` resumes |\n\
    | Alt-Enter, Ctrl-J | adds a line |\n\
    | Ctrl-R, Up, Down | searches and walks the history |\n\
    | Ctrl-G | opens `$EDITOR` |\n\
    | Ctrl-V | attaches the clipboard's image |\n\
    | Ctrl-O | shows the next question, also of other conversations |\n\
    | Ctrl-T | shows the last reasoning and tool results in full |\n\
    | @path, @agent | attaches a file; lets an agent answer once |\n\
    | !command | runs a command and shows the output to the agent |\n";

impl Live<'_> {
    /// Submits the text; `queue` sends it behind the active run.
    pub(super) fn submit(&mut self, queue: bool) -> Result<Go, Error> {
        if self.composer.text().trim().is_empty() {
            if !queue {
                self.composer.clear();
                if self.is_gone() && !self.unsent().is_empty() {
                    self.start();
                }
            }
            return Ok(Go::On);
        }
        let typed = self.composer.take();
        self.popup = None;
        self.remember(&typed);
        let queue = queue || typed.starts_with(' ');
        let text = typed.trim();
        if let Some(command) = text.strip_prefix('!') {
            self.shell(command.trim());
            return Ok(Go::On);
        }
        if let Some(rest) = text.strip_prefix('/') {
            let (word, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            match self.learned.known.meaning(word) {
                Meaning::Command(name) => {
                    self.transcript.did(text);
                    return Ok(self.command(name, arguments.trim()));
                }
                Meaning::Unknown(said) => {
                    self.transcript.problem(&said);
                    self.composer.set(&typed);
                    return Ok(Go::On);
                }
                Meaning::Message => {}
            }
        }
        self.say(text, queue);
        Ok(Go::On)
    }

    fn say(&mut self, text: &str, queue: bool) {
        self.coming.sent();
        let said = std::mem::take(&mut self.shown);
        let Message {
            content,
            guest,
            shown,
            notes,
        } = message(
            text,
            &self.learned.known.agents,
            &self.cwd,
            &said,
            !self.learned.is_older,
        );
        for note in notes {
            self.transcript.note(&note);
        }
        let shows = !shown.images.is_empty();
        if self.runs.is_running() && !queue && shows {
            self.transcript
                .note("messages with images wait for the end of the run");
        }
        if self.runs.is_running() && !queue && guest.is_none() && !shows {
            self.steers.push(content.clone());
            self.call(calls::steer(
                self.client.clone(),
                self.pair.clone(),
                content,
            ));
            return;
        }
        self.send(content, guest, shown, text.to_owned());
    }

    /// Sends a message, which the daemon queues.
    pub(super) fn send(
        &mut self,
        content: String,
        guest: Option<String>,
        shown: Shown,
        said: String,
    ) {
        let request = StreamMsg {
            agent: self.pair.agent.clone(),
            content,
            sender: Some(self.pair.sender.clone()).filter(|sender| !sender.is_empty()),
            cwd: match self.context.cwd() {
                Ok(cwd) => cwd,
                Err(error) => return self.transcript.problem(&error.to_string()),
            },
            guest,
            images: shown.images,
            model: self.context.global.model.clone(),
            mode: self.mode.wire(),
            ..StreamMsg::default()
        };
        if self.runs.is_empty() {
            self.since = Instant::now();
        }
        if self.is_gone() {
            return self.hold(request, said);
        }
        self.runs.send(&self.client, request, said);
    }

    fn shell(&mut self, command: &str) {
        if command.is_empty() || self.shell.is_some() {
            let why = match command.is_empty() {
                true => "type a command after !",
                false => "a command is running already; Esc ends it",
            };
            return self.transcript.problem(why);
        }
        let (abortable, handle) =
            futures_util::future::abortable(calls::shell(command.to_owned(), self.cwd.clone()));
        let ended = command.to_owned();
        self.call(async move {
            abortable.await.unwrap_or(calls::Done::Shell {
                command: ended,
                status: "interrupted".to_owned(),
                output: String::new(),
            })
        });
        self.since = Instant::now();
        self.shell = Some((command.to_owned(), handle));
    }

    fn command(&mut self, name: &str, arguments: &str) -> Go {
        let (client, pair) = (self.client.clone(), self.pair.clone());
        match name {
            "help" => self.help(),
            "model" => self.model_command(arguments),
            "agent" => self.agent_command(arguments),
            "mode" => match self.mode.command(arguments) {
                Ok(said) => self.transcript.note(&said),
                Err(why) => self.transcript.problem(&why),
            },
            "compact" => {
                self.transcript
                    .note("compacting; the history stays as an archive");
                self.call(calls::compact(client, pair, arguments.to_owned()));
            }
            "new" => self.call(calls::start_fresh(client, pair)),
            "switch" => self.switch_command(arguments),
            "diff" | "undo" => self.changes_command(name, arguments),
            "context" => self.context_command(),
            "cost" => self.call(calls::cost(client, (self.tokens, self.money))),
            "permissions" => self.call(calls::rights(client, pair.agent, true)),
            "tools" => self.call(calls::rights(client, pair.agent, false)),
            "skills" => {
                let cwd = self.cwd.to_str().map(str::to_owned);
                self.call(calls::skills(client, cwd));
            }
            "mcp" => self.call(calls::mcps(client)),
            "memory" => self.call(calls::memory(client, pair, arguments.to_owned())),
            "asks" => match self.others.len() {
                0 => self.transcript.note("no questions in other conversations"),
                _ => self.next_ask(),
            },
            "history" => {
                let count = match arguments {
                    "" => Some(HISTORY),
                    words => words.parse().ok().filter(|count| *count > 0),
                };
                match count {
                    Some(count) => self.call(calls::history(client, pair, count)),
                    None => self.transcript.problem(&format!(
                        "/history takes a number of messages, such as /history {HISTORY}"
                    )),
                }
            }
            "export" => self.export(arguments),
            "copy" => self.copy(),
            "title" if arguments.is_empty() => self.transcript.problem("type a title after /title"),
            "title" => self.call(calls::title(client, pair, arguments.to_owned())),
            "kill" => self.kill(),
            _ => return Go::Leave,
        }
        Go::On
    }

    fn help(&mut self) {
        let mut text = format!("{KEYS}\n\n| command | |\n|---|---|\n");
        for command in COMMANDS {
            let words = format!("/{} {}", command.name, command.arguments);
            text.push_str(&format!("| {} | {} |\n", words.trim(), command.about));
        }
        let lines = crabtalk_render::render(&text, self.transcript.width());
        self.transcript.lines(lines);
    }

    fn show(&mut self, text: &str) {
        let lines = crabtalk_render::render(text, self.transcript.width());
        self.transcript.lines(lines);
    }

    fn model_command(&mut self, name: &str) {
        if !name.is_empty() {
            return self.call(calls::use_model(self.client.clone(), name.to_owned()));
        }
        let row = |model: &crabtalk_proto::ModelInfo| {
            let active = if model.active { "\u{25cf}" } else { "" };
            let context = model
                .context
                .map_or_else(String::new, crabtalk_render::tokens);
            format!(
                "| {active} | {} | {} | {context} |\n",
                model.name, model.provider
            )
        };
        let rows: String = self.learned.models.iter().map(row).collect();
        match rows.is_empty() {
            true => self.show("The built-in demonstration answers; `crabtalk providers` shows how to add a model."),
            false => self.show(&format!("| | model | provider | context |\n|---|---|---|--:|\n{rows}\n`/model NAME` sets the default.")),
        }
    }

    fn agent_command(&mut self, name: &str) {
        let agents = &self.learned.known.agents;
        if name.is_empty() {
            let list: Vec<String> = agents.iter().map(|agent| format!("`{agent}`")).collect();
            let text = match list.len() {
                0 | 1 => format!(
                    "You talk to **{}**, the only agent. `crabtalk agents new` creates another one.",
                    self.learned.agent
                ),
                _ => format!(
                    "You talk to **{}**. The agents are {}. `/agent NAME` talks to another one, `@NAME text` lets it answer once.",
                    self.learned.agent,
                    list.join(", ")
                ),
            };
            return self.show(&text);
        }
        if !agents.iter().any(|agent| agent == name) {
            let near = crabtalk_config::nearest(name, agents.iter().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return self
                .transcript
                .problem(&format!("unknown agent {name}{hint}"));
        }
        let pair = Pair {
            agent: name.to_owned(),
            sender: self.pair.sender.clone(),
        };
        self.turn_to(pair, &format!("now with {name}"));
    }

    fn context_command(&mut self) {
        let used = match self.context_used().as_str() {
            "" => "window size unknown".to_owned(),
            used => used.to_owned(),
        };
        let text = format!(
            "The context holds **{}** tokens ({used}). This chat used {} tokens. \
             `/compact` makes room.",
            crabtalk_render::tokens(self.context_tokens),
            crabtalk_render::tokens(self.tokens)
        );
        self.show(&text);
    }

    fn export(&mut self, file: &str) {
        let name = match file {
            "" => format!(
                "{}-{}.md",
                self.learned.agent,
                jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S")
            ),
            file => file.to_owned(),
        };
        let file = self.cwd.join(name);
        self.call(calls::export(self.client.clone(), self.pair.clone(), file));
    }

    /// Copies the last answer to the terminal's clipboard.
    fn copy(&mut self) {
        let answer = self.transcript.answer.trim();
        if answer.is_empty() {
            return self.transcript.note("no answer yet");
        }
        let count = answer.chars().count();
        let sequence = format!("\x1b]52;c;{}\x07", base64(answer.as_bytes()));
        // A terminal without clipboard support ignores it.
        let _ = self.canvas.send(&sequence);
        self.transcript.note(&format!(
            "copied {count} characters, if this terminal allows it"
        ));
    }
}

/// Base64, for the terminal's clipboard.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = [
            chunk[0],
            *chunk.get(1).unwrap_or(&0),
            *chunk.get(2).unwrap_or(&0),
        ];
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for index in 0..4 {
            let digit = bits >> (18 - 6 * index) & 63;
            text.push(if index <= chunk.len() {
                char::from(DIGITS[digit as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn clipboard_text_is_base64() {
        for (text, want) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("h\u{e9}", "aMOp"),
        ] {
            assert_eq!(super::base64(text.as_bytes()), want);
        }
    }
}
