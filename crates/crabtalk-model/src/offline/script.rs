//! Commands of the offline model in a user message.

use serde_json::{Map, Value, json};
use std::time::Duration;

/// Longest pause between two words.
const MAX_PAUSE_MS: u64 = 60_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Say(String),
    /// Repeats the message and describes the request.
    Repeat(String),
    Think(String),
    Call {
        name: String,
        /// The arguments as text.
        arguments: String,
    },
}

/// The commands of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) acts: Vec<Act>,
    /// Pause between two words.
    pub(super) pause: Duration,
}

impl Script {
    /// Reads the commands at the beginning of a message; the rest is repeated.
    pub(super) fn parse(text: &str) -> Self {
        let mut script = Self {
            acts: Vec::new(),
            pause: Duration::ZERO,
        };
        let mut rest = text.trim();
        while let Some(after) = script.command(rest) {
            rest = after.trim_start();
        }
        if script.acts.is_empty() || !rest.is_empty() {
            script.acts.push(Act::Repeat(rest.to_owned()));
        }
        script
    }

    /// Reads one command, if there is one.
    fn command<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let (word, rest) = first_word(text.strip_prefix('/')?);
        match word {
            "slow" => {
                let (ms, rest) = first_word(rest);
                let ms = ms.parse::<u64>().ok()?.min(MAX_PAUSE_MS);
                self.pause = Duration::from_millis(ms);
                Some(rest)
            }
            "think" => {
                let (line, rest) = first_line(rest);
                self.acts.push(Act::Think(line.to_owned()));
                if rest.is_empty() {
                    self.acts.push(Act::Say(format!("I thought: {line}")));
                }
                Some(rest)
            }
            "ask" => {
                let (question, rest) = first_line(rest);
                let question = json!({
                    "question": question, "header": "Question", "options": [], "multi_select": false,
                });
                let arguments = json!({ "questions": [question] }).to_string();
                self.acts.push(Act::Call {
                    name: "ask_user".into(),
                    arguments,
                });
                Some(rest)
            }
            "tool" => Some(self.tool(rest)),
            _ => None,
        }
    }

    fn tool<'a>(&mut self, text: &'a str) -> &'a str {
        let (name, rest) = first_word(text);
        if name.is_empty() {
            self.acts.push(Act::Say(
                "/tool needs the name of a tool and a JSON object.".into(),
            ));
            return rest;
        }
        let name = name.to_owned();
        if !rest.starts_with('{') {
            self.acts.push(Act::Call {
                name,
                arguments: "{}".into(),
            });
            return rest;
        }
        let mut objects =
            serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        match objects.next() {
            Some(Ok(_)) => {
                let (arguments, rest) = rest.split_at(objects.byte_offset());
                self.acts.push(Act::Call {
                    name,
                    arguments: arguments.to_owned(),
                });
                rest
            }
            Some(Err(error)) => {
                let problem = format!("The arguments after /tool {name} are not JSON: {error}.");
                self.acts.push(Act::Say(problem));
                ""
            }
            None => "",
        }
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (word, rest.trim_start())
}

fn first_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim(), rest.trim_start())
}
