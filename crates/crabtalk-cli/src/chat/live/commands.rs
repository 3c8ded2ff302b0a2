//! Handlers of the chat's commands; `slash` has their table.

use super::Live;
use super::calls::{self, Pair};
use super::slash::COMMANDS;
use super::status;
use crate::text::money;
use base64::prelude::{BASE64_STANDARD, Engine};
use crabtalk_proto::{
    CompactMsg, GetMemoryMsg, GetRightsMsg, GetStats, ListMcpsMsg, ListMemoryMsg, ListSkillsMsg,
    SetActiveModelMsg, SetConversationMsg,
};
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
        self.put_away(CompactMsg {
            focus: Some(focus.to_owned()).filter(|focus| !focus.is_empty()),
            ..CompactMsg::default()
        });
    }

    /// Archives the history.
    pub(super) fn new_command(&mut self) {
        self.put_away(CompactMsg {
            fresh: true,
            ..CompactMsg::default()
        });
    }

    fn put_away(&mut self, how: CompactMsg) {
        let Pair { agent, sender } = self.pair.clone();
        let request = CompactMsg {
            agent,
            sender,
            ..how
        };
        self.request(request, |live, answer| live.is_put_away(answer));
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
        self.request(GetStats { days: 1 }, move |live, stats| {
            live.shown(stats.map(|stats| status::cost(&stats, session)));
        });
    }

    /// Shows the agent's rules, or only the names of its tools.
    pub(super) fn rights_command(&mut self, rules: bool) {
        let agent = self.pair.agent.clone();
        self.request(GetRightsMsg { agent }, move |live, rights| {
            live.shown(rights.map(|rights| calls::rights(&rights, rules)));
        });
    }

    pub(super) fn skills_command(&mut self) {
        let cwd = self.cwd.to_str().map(str::to_owned);
        self.request(ListSkillsMsg { cwd }, |live, list| {
            live.shown(list.map(|list| calls::skills(&list)));
        });
    }

    pub(super) fn mcp_command(&mut self) {
        self.request(ListMcpsMsg {}, |live, list| {
            live.shown(list.map(|list| calls::mcps(&list)));
        });
    }

    pub(super) fn memory_command(&mut self, name: &str) {
        let Pair { agent, sender } = self.pair.clone();
        if !name.is_empty() {
            let request = GetMemoryMsg {
                agent,
                sender,
                name: name.to_owned(),
            };
            return self.request(request, |live, entry| {
                live.shown(entry.map(|entry| format!("**{}**\n\n{}", entry.name, entry.content)));
            });
        }
        let request = ListMemoryMsg {
            agent,
            sender,
            offset: 0,
            limit: 50,
        };
        self.request(request, |live, list| {
            live.shown(list.map(|list| calls::memory(&list)));
        });
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
                let request = calls::last_messages(self.pair.clone(), count);
                self.request(request, |live, page| {
                    if let Some(page) = live.answered_by(page) {
                        live.show_page(&page);
                    }
                });
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
        let Pair { agent, sender } = self.pair.clone();
        let said = format!("title set to \"{title}\"");
        let request = SetConversationMsg {
            agent,
            sender,
            title: Some(title.to_owned()),
            cwd: None,
        };
        self.request(request, |live, answer| live.noted(answer.map(|()| said)));
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
        let pair = self.learned_pair();
        let local = self.context.known_client().endpoint().is_local();
        let sessions = local.then(|| self.context.home.sessions_dir());
        let status = status::status(self.client.clone(), pair, rows, sessions);
        self.call(status, |live, text| live.show(&text));
    }

    pub(super) fn help(&mut self) {
        let mut text = format!("{KEYS}\n\n| command | |\n|---|---|\n");
        for command in COMMANDS {
            let words = format!("/{} {}", command.name, command.arguments);
            text.push_str(&format!("| {} | {} |\n", words.trim(), command.about));
        }
        self.show(&text);
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
            let said = format!("Default model: {name}");
            let model = name.to_owned();
            return self.request(SetActiveModelMsg { model }, |live, answer| {
                live.noted(answer.map(|()| said));
            });
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
        let export = calls::export(self.client.clone(), self.pair.clone(), file);
        self.call(export, |live, said| live.noted(said));
    }

    /// Copies the last answer to the terminal's clipboard.
    pub(super) fn copy(&mut self) {
        let answer = self.transcript.answer.trim();
        if answer.is_empty() {
            return self.transcript.note("no answer yet");
        }
        let count = answer.chars().count();
        let sequence = format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(answer));
        // A terminal without clipboard support ignores it.
        let _ = self.canvas.send(&sequence);
        self.transcript.note(&format!(
            "copied {count} characters, if this terminal allows it"
        ));
    }
}
