//! Handling of submitted text.

use super::calls::{self, Pair, Ran};
use super::slash::Meaning;
use super::{Go, Live};
use crate::chat::message::{Message, message};
use crate::error::Error;
use crabtalk_proto::{Image, SteerSessionMsg, StreamMsg};
use std::time::Instant;

impl Live<'_> {
    /// Submits the text; with `queue`, after the active run.
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
        if self.reports_unknown(if queue { "Tab" } else { "Enter" }) {
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
                Meaning::Command(command) => {
                    self.transcript.did(text);
                    (command.run)(self, arguments.trim());
                    return Ok(if self.quits { Go::Leave } else { Go::On });
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
        self.is_announced = false;
        let said = std::mem::take(&mut self.shown);
        let Message {
            content,
            guest,
            images,
            notes,
        } = message(text, &self.learned.known.agents, &self.cwd, &said);
        for note in notes {
            self.transcript.note(&note);
        }
        let shows = !images.is_empty();
        if self.runs.is_running() && !queue && shows {
            self.transcript
                .note("messages with images wait for the end of the run");
        }
        if self.runs.is_running() && !queue && guest.is_none() && !shows {
            self.steers.push(content.clone());
            let Pair { agent, sender } = self.pair.clone();
            let request = SteerSessionMsg {
                agent,
                sender,
                content: content.clone(),
            };
            return self.request(request, move |live, answer| live.steered(&content, answer));
        }
        let is_held = self.is_gone();
        self.send(content, guest, images, text.to_owned());
        if !is_held && !said.is_empty() {
            self.runs.keep_outputs(said);
        }
    }

    /// Sends a message, which the daemon queues.
    pub(super) fn send(
        &mut self,
        content: String,
        guest: Option<String>,
        images: Vec<Image>,
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
            images,
            model: self.model.wire(),
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
        self.call(abortable, move |live, ran| {
            let ran = ran.unwrap_or(Ran {
                status: "interrupted".to_owned(),
                output: String::new(),
            });
            live.shell_done(&ended, &ran);
        });
        self.since = Instant::now();
        self.shell = Some((command.to_owned(), handle));
    }
}
