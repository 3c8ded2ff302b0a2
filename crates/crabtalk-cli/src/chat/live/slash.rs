//! The table of the chat's commands.
//!
//! Invariant: an unknown `/word` is an error that names the nearest command.

use super::Live;
use super::choice::Purpose;
use super::complete::Known;
use crate::chat::message::DEMONSTRATION;
use crabtalk_config::nearest;

/// A command: a row of the menu and of `/help`, and its handler.
pub(super) struct Slash {
    pub(super) name: &'static str,
    /// Its arguments; optional ones in brackets.
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
    /// Handler, called with the trimmed text after the name.
    pub(super) run: Handler,
}

impl Slash {
    /// Whether the command can be run without arguments.
    pub(super) fn runs_alone(&self) -> bool {
        self.arguments.is_empty() || self.arguments.starts_with('[')
    }
}

type Handler = fn(&mut Live<'_>, &str);

/// Makes a table of rows `name arguments about => handler;`.
macro_rules! table {
    ($live:ident, $words:ident: $($name:literal $arguments:literal $about:literal => $run:expr;)*) => {
        &[$(Slash {
            name: $name,
            arguments: $arguments,
            about: $about,
            run: |$live, $words| {
                let _ = $words;
                $run;
            },
        }),*]
    };
}

/// All commands, in the order of `/help`.
pub(super) static COMMANDS: &[Slash] = table! { live, words:
    "help" "" "keys and commands" => live.help();
    "status" "" "show model, mode, folder, tokens, cost and session" => live.status_command();
    "model" "[NAME]" "list models, or set the model of this conversation (--default: of all)"
        => live.model_command(words);
    "agent" "[NAME]" "list agents, or talk to another one" => live.agent_command(words);
    "mode" "[NAME]" "show or set how much runs may do without asking" => live.mode_command(words);
    "compact" "[FOCUS]" "summarise the history" => live.compact_command(words);
    "new" "" "archive the history and start a new one" => live.new_command();
    "clear" "" "like /new, and clear the screen" => live.clear_command();
    "resume" "[WORDS]" "continue an archive, or a conversation of this folder"
        => live.resume_command(words);
    "rewind" "[WORDS]" "return to one of your earlier messages (also Esc Esc)"
        => live.rewind_command(words);
    "switch" "[WORDS]" "switch to another conversation or archive"
        => live.pick_place(Purpose::Switch, words);
    "topic" "[NAME]" "show the topic, or switch to one of this folder" => live.topic_command(words);
    "topics" "[WORDS]" "list the topics of this folder" => live.topics_command(words);
    "diff" "[RUN]" "show the file changes of a run" => live.changes_command("diff", words);
    "undo" "[RUN]" "revert the file changes of a run" => live.changes_command("undo", words);
    "context" "" "show the size of the context" => live.context_command();
    "cost" "" "show today's spending" => live.cost_command();
    "permissions" "" "show the agent's permissions" => live.rights_command(true);
    "tools" "" "list the agent's tools" => live.rights_command(false);
    "skills" "" "list skills" => live.skills_command();
    "mcp" "" "list MCP servers" => live.mcp_command();
    "memory" "[NAME]" "list or show memory entries" => live.memory_command(words);
    "asks" "" "answer questions of other conversations" => live.asks_command();
    "history" "[COUNT]" "show the last messages" => live.history_command(words);
    "export" "[FILE]" "write the conversation to a Markdown file" => live.export(words);
    "copy" "" "copy the last answer to the clipboard" => live.copy();
    "title" "TEXT" "name the conversation" => live.title_command(words);
    "kill" "" "cancel the run" => live.kill();
    "quit" "" "leave (also Ctrl-D)" => live.quits = true;
    "exit" "" "leave" => live.quits = true;
};

/// Meaning of a `/word`.
pub(super) enum Meaning {
    Command(&'static Slash),
    /// The name of a skill; the message is sent to the agent.
    Message,
    /// Unknown, with an error message.
    Unknown(String),
}

impl Known {
    /// Whether a `/word` is a command or skill.
    pub(super) fn is_command(&self, word: &str) -> bool {
        !matches!(self.meaning(word), Meaning::Unknown(_))
    }

    /// Whether a message that begins with `/word` is for the agent.
    pub(super) fn is_message(&self, word: &str) -> bool {
        matches!(self.meaning(word), Meaning::Message)
    }

    /// The meaning of `/NAME` at the beginning of a message.
    pub(super) fn meaning(&self, word: &str) -> Meaning {
        let alias = match word {
            "q" => "quit",
            "?" => "help",
            word => word,
        };
        if let Some(command) = COMMANDS.iter().find(|command| command.name == alias) {
            return Meaning::Command(command);
        }
        let is_skill = self.skills.iter().any(|skill| skill == word);
        if is_skill || self.demonstration && DEMONSTRATION.contains(&word) {
            return Meaning::Message;
        }
        let names = COMMANDS.iter().map(|command| command.name);
        let names = names.chain(self.skills.iter().map(String::as_str));
        let hint = match nearest(word, names) {
            Some(name) => format!("did you mean /{name}?"),
            None => "/help lists them".to_owned(),
        };
        Meaning::Unknown(format!("unknown command /{word}; {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_names_the_nearest() {
        let known = Known {
            skills: vec!["style".into()],
            ..Known::default()
        };
        let command = |word: &str| match known.meaning(word) {
            Meaning::Command(command) => command.name,
            Meaning::Message | Meaning::Unknown(_) => "",
        };
        assert_eq!(command("quit"), "quit");
        assert_eq!(command("q"), "quit");
        assert_eq!(command("?"), "help");
        assert!(matches!(known.meaning("style"), Meaning::Message));
        let unknown = |word: &str| match known.meaning(word) {
            Meaning::Unknown(said) => said,
            Meaning::Command(_) | Meaning::Message => panic!("{word} is known"),
        };
        assert!(unknown("compcat").ends_with("did you mean /compact?"));
        assert!(unknown("styl").ends_with("did you mean /style?"));
        assert!(unknown("tool").contains("/tools"), "{}", unknown("tool"));
        let demonstration = Known {
            demonstration: true,
            ..known
        };
        assert!(matches!(demonstration.meaning("slow"), Meaning::Message));
    }
}
