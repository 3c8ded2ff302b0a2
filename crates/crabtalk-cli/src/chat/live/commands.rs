//! Handlers of the chat's commands; `slash` has their table.

use super::Live;
use super::calls::{self, Pair};
use super::slash::COMMANDS;
use super::status;
use crate::text::money;
use crabtalk_render::tokens;

/// Option that makes `/model` change the default.
const DEFAULT: &str = "--default";

/// Default number of messages of `/history`.
const HISTORY: u32 = 30;

const KEYS: &str = "| key | does |\n|---|---|\n\
    | Enter | sends; during a run, steers it |\n\
    | Tab, or a leading space | queues the message after the run |\n\
    | Esc | interrupts the run |\n\
    | Esc Esc | returns to one of your earlier messages, if no run is active |\n\
    | Shift+Tab | switches the mode: read-only, ask, auto |\n\
    | Ctrl-C | clears the text, else cancels the run; twice leaves |\n\
    | Ctrl-D | leaves |\n\
    | Ctrl-Z | suspends the chat; `fg` resumes |\n\
    | Alt-Enter, Ctrl-J | adds a line |\n\
    | Up in an empty line | takes the newest queued message back |\n\
    | Ctrl-R, Up, Down | searches and walks the history |\n\
    | Ctrl-G | opens `$EDITOR` |\n\
    | Ctrl-V | attaches the clipboard's image |\n\
    | Ctrl-O | shows the next question, also of other conversations |\n\
    | Ctrl-S | shows the output of members at work |\n\
    | Ctrl-T | shows the last reasoning and tool results in full |\n\
    | @path, @agent | attaches a file; lets an agent answer once |\n\
    | !command | runs a command and shows the output to the agent |\n";

impl Live<'_> {
    pub(super) fn mode_command(&mut self, name: &str) {
        match self.mode.command(name) {
            Ok(said) => self.transcript.note(&said),
            Err(why) => self.transcript.problem(&why),
        }
    }

    pub(super) fn compact_command(&mut self, focus: &str) {
        self.transcript
            .note("compacting; the history stays as an archive");
        let (client, pair) = (self.client.clone(), self.pair.clone());
        self.call(calls::compact(client, pair, focus.to_owned()));
    }

    /// Archives the history.
    pub(super) fn new_command(&mut self) {
        self.call(calls::start_fresh(self.client.clone(), self.pair.clone()));
    }

    /// Archives the history and scrolls the screen away.
    pub(super) fn clear_command(&mut self) {
        if self.runs.is_running() {
            return self
                .transcript
                .problem("a run is active: interrupt it with Esc, then type /clear");
        }
        // A closed terminal ends the chat on its own.
        let _ = self.canvas.scroll_away(self.size.1);
        self.new_command();
    }

    pub(super) fn cost_command(&mut self) {
        let session = (self.figures.tokens, self.figures.money);
        self.call(status::cost(self.client.clone(), session));
    }

    /// Shows the agent's rules, or only the names of its tools.
    pub(super) fn rights_command(&mut self, rules: bool) {
        let agent = self.pair.agent.clone();
        self.call(calls::rights(self.client.clone(), agent, rules));
    }

    pub(super) fn skills_command(&mut self) {
        let cwd = self.cwd.to_str().map(str::to_owned);
        self.call(calls::skills(self.client.clone(), cwd));
    }

    pub(super) fn mcp_command(&mut self) {
        self.call(calls::mcps(self.client.clone()));
    }

    pub(super) fn memory_command(&mut self, name: &str) {
        let (client, pair) = (self.client.clone(), self.pair.clone());
        self.call(calls::memory(client, pair, name.to_owned()));
    }

    pub(super) fn asks_command(&mut self) {
        match self.others.len() {
            0 => self.transcript.note("no questions in other conversations"),
            _ => self.next_ask(),
        }
    }

    pub(super) fn history_command(&mut self, count: &str) {
        let count = match count {
            "" => Some(HISTORY),
            words => words.parse().ok().filter(|count| *count > 0),
        };
        match count {
            Some(count) => {
                let (client, pair) = (self.client.clone(), self.pair.clone());
                self.call(calls::history(client, pair, count));
            }
            None => self.transcript.problem(&format!(
                "/history takes a number of messages, such as /history {HISTORY}"
            )),
        }
    }

    pub(super) fn title_command(&mut self, title: &str) {
        if title.is_empty() {
            return self.transcript.problem("type a title after /title");
        }
        let (client, pair) = (self.client.clone(), self.pair.clone());
        self.call(calls::title(client, pair, title.to_owned()));
    }

    /// Shows the settings of this chat; the daemon adds its version and the session's file.
    pub(super) fn status_command(&mut self) {
        let mode = match self.mode.name() {
            "" => "by agent and folder",
            mode => mode,
        };
        let context = match (self.figures.context, self.context_used().as_str()) {
            (0, _) => String::new(),
            (used, "") => format!(", {} in the context", tokens(used)),
            (used, share) => format!(", {} in the context ({share})", tokens(used)),
        };
        let rows = vec![
            ("model", self.model.name().to_owned()),
            ("mode", mode.to_owned()),
            ("folder", self.place()),
            ("agent", self.learned.agent.clone()),
            ("sender", self.learned.sender.clone()),
            (
                "tokens",
                format!("{} in this chat{context}", tokens(self.figures.tokens)),
            ),
            (
                "cost",
                format!("{} in this conversation", money(self.figures.money)),
            ),
        ];
        let pair = Pair {
            agent: self.learned.agent.clone(),
            sender: self.learned.sender.clone(),
        };
        let local = self.context.known_client().endpoint().is_local();
        let sessions = local.then(|| self.context.home.sessions_dir());
        self.call(status::status(self.client.clone(), pair, rows, sessions));
    }

    pub(super) fn help(&mut self) {
        let mut text = format!("{KEYS}\n\n| command | |\n|---|---|\n");
        for command in COMMANDS {
            let words = format!("/{} {}", command.name, command.arguments);
            text.push_str(&format!("| {} | {} |\n", words.trim(), command.about));
        }
        let lines = crabtalk_render::render(&text, self.transcript.width());
        self.transcript.lines(lines);
    }

    pub(super) fn show(&mut self, text: &str) {
        let lines = crabtalk_render::render(text, self.transcript.width());
        self.transcript.lines(lines);
    }

    /// Handles `/model [NAME [--default]]`.
    pub(super) fn model_command(&mut self, arguments: &str) {
        let is_default = arguments.split_whitespace().any(|word| word == DEFAULT);
        let mut names = arguments.split_whitespace().filter(|word| *word != DEFAULT);
        match (names.next(), names.next()) {
            (None, _) if is_default => self
                .transcript
                .problem("type a model's name: /model NAME --default"),
            (None, _) => self.list_models(),
            (Some(_), Some(_)) => self.transcript.problem("/model takes one name"),
            (Some(name), None) => self.choose_model(name, is_default),
        }
    }

    fn choose_model(&mut self, name: &str, is_default: bool) {
        let models = &self.learned.models;
        // Without a list of models, the daemon checks the name.
        if !models.is_empty() && !models.iter().any(|model| model.name == name) {
            let near = crabtalk_config::nearest(name, models.iter().map(|m| m.name.as_str()));
            let hint = near.map_or_else(
                || "/model lists them".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            let why = format!("unknown model {name}; {hint}");
            return self.transcript.problem(&why);
        }
        if is_default {
            self.model.clear();
            return self.call(calls::use_model(self.client.clone(), name.to_owned()));
        }
        let said = self.model.choose(name);
        self.transcript.note(&said);
    }

    fn list_models(&mut self) {
        let shown = self.model.name().to_owned();
        let row = |model: &crabtalk_proto::ModelInfo| {
            let active = if model.name == shown { "\u{25cf}" } else { "" };
            let default = if model.active { "default" } else { "" };
            let context = model
                .context
                .map_or_else(String::new, crabtalk_render::tokens);
            format!(
                "| {active} | {} | {} | {context} | {default} |\n",
                model.name, model.provider
            )
        };
        let rows: String = self.learned.models.iter().map(row).collect();
        match rows.is_empty() {
            true => self.show("The built-in demonstration answers; `crabtalk providers` shows how to add a model."),
            false => self.show(&format!("| | model | provider | context | |\n|---|---|---|--:|---|\n{rows}\n`/model NAME` is for this conversation, `/model NAME --default` for all.")),
        }
    }

    pub(super) fn agent_command(&mut self, name: &str) {
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
        self.turn_to(pair, &format!("now talking to {name}"));
    }

    pub(super) fn context_command(&mut self) {
        let used = match self.context_used().as_str() {
            "" => "window size unknown".to_owned(),
            used => used.to_owned(),
        };
        let text = format!(
            "The context holds **{}** tokens ({used}). This chat used {} tokens. \
             `/compact` makes room.",
            crabtalk_render::tokens(self.figures.context),
            crabtalk_render::tokens(self.figures.tokens)
        );
        self.show(&text);
    }

    pub(super) fn export(&mut self, file: &str) {
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
    pub(super) fn copy(&mut self) {
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

/// Encodes bytes as base64 for the terminal's clipboard.
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
