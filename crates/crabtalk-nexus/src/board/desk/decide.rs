//! Keys that answer prompts.
//!
//! Invariants: a key answers only the prompt that was shown long enough to be read, by its id;
//! a prompt that does not fit must be read to its end first.

use super::{Desk, Do, Mode, Reading, SETTLES, Typing};
use crate::backend::Reply;
use crate::name::Name;
use crate::world::{AgentLine, Command};
use std::time::Instant;

impl Desk {
    /// Handles a key that answers the open prompt.
    pub(super) fn decide(&mut self, key: char, now: Instant) -> Do {
        let Some(line) = self.chosen() else {
            return Do::Nothing;
        };
        let agent = line.name.clone();
        let Some(prompt) = line.waits.clone() else {
            return self.decide_compression(key, agent);
        };
        let id = prompt.id.clone();
        if key == 'v' {
            let title = format!("{agent} asks");
            self.read(title, whole(&prompt), Some((agent, id)));
            return Do::Nothing;
        }
        let stands = match &self.prompt {
            Some((known, since, fits)) if *known == id => {
                (now.duration_since(*since) >= SETTLES).then_some(*fits)
            }
            _ => None,
        };
        let Some(fits) = stands else {
            self.say("the request has just changed: read it, then press again");
            return Do::Nothing;
        };
        if matches!(key, 'd' | 'n') {
            let what = Typing::Deny(agent, Some(id));
            self.mode = Mode::Typing(what, Box::default());
            return Do::Nothing;
        }
        if prompt.is_question {
            let what = Typing::Reply(agent, id);
            self.mode = Mode::Typing(what, Box::default());
            return Do::Nothing;
        }
        if line_is_cut(self.chosen()) {
            self.say("too long to show here; press t to attach");
            return Do::Nothing;
        }
        if !fits {
            let title = format!("{agent} asks; scroll to the end, then {key} allows it");
            self.read(title, whole(&prompt), Some((agent, id)));
            return Do::Nothing;
        }
        self.allow(key, agent, id, &prompt.always)
    }

    fn allow(&mut self, key: char, agent: Name, id: String, always: &str) -> Do {
        match key {
            'a' | 'y' => reply(agent, Some(id), Reply::Allow),
            'A' if always.is_empty() => {
                self.say("\"always\" is not offered here");
                Do::Nothing
            }
            'A' => reply(agent, Some(id), Reply::Always),
            _ => Do::Nothing,
        }
    }

    fn decide_compression(&mut self, key: char, agent: Name) -> Do {
        let waits = self.chosen().is_some_and(|line| line.for_admin);
        match key {
            'a' | 'y' if waits => reply(agent, None, Reply::Allow),
            'd' | 'n' if waits => reply(agent, None, Reply::Deny(String::new())),
            _ => {
                self.say("this agent does not wait for you");
                Do::Nothing
            }
        }
    }

    /// Handles a key that allows the prompt being read.
    pub(super) fn decide_reading(&mut self, key: char, reading: Reading, _: Instant) -> Do {
        let Some((agent, id)) = reading.prompt.clone() else {
            self.mode = Mode::Reading(reading);
            return Do::Nothing;
        };
        if !reading.to_the_end {
            self.mode = Mode::Reading(reading);
            self.say("scroll to the end first");
            return Do::Nothing;
        }
        let line = self.agents.iter().find(|line| line.name == agent);
        let asked = line.and_then(|line| line.waits.clone());
        if line_is_cut(line) {
            self.say("too long to show here; press t to attach");
            return Do::Nothing;
        }
        match asked.filter(|asked| asked.id == id && !asked.is_question) {
            Some(asked) => self.allow(key, agent, id, &asked.always),
            None => {
                self.say("this request is closed");
                Do::Nothing
            }
        }
    }
}

pub(super) fn reply(agent: Name, prompt: Option<String>, reply: Reply) -> Do {
    Do::Say(Command::Reply {
        agent,
        prompt,
        reply,
    })
}

fn line_is_cut(line: Option<&AgentLine>) -> bool {
    line.is_some_and(|line| line.is_cut)
}

/// The complete text of a prompt, with its effect.
pub(in crate::board) fn whole(prompt: &crate::backend::Prompt) -> String {
    let mut text = String::new();
    if !prompt.tool.is_empty() || !prompt.subject.is_empty() {
        // Every character of the judged text must be visible, including box-drawing characters.
        let judged = format!("{} {}\n", prompt.tool, prompt.subject);
        text.push_str(&crabtalk_render::exact(judged.trim_start()));
    }
    if prompt.text.trim() != prompt.subject.trim() {
        text.push_str(&prompt.text);
        text.push('\n');
    }
    if !prompt.options.is_empty() && prompt.is_question {
        text.push_str(&format!("({})\n", prompt.options.join(", ")));
    }
    if !prompt.always.is_empty() {
        text.push_str(&format!("always: {}\n", prompt.always));
    }
    text
}
