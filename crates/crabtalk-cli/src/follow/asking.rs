//! Asks the questions of a run and sends the answers.
//!
//! Invariants: input typed before a question does not answer it; a finished step has no
//! open question.

use super::{Answers, Following, SETTLE, advice};
use crate::error::Error;
use crate::prompt::{self, NOBODY, Prompt, Step};
use crate::view;
use crabtalk_client::Replied;
use crabtalk_proto::{AskSettledEvent, AskUserEvent, ReplyToAsk, StreamEvent};
use tokio::time::Instant;

impl Following<'_> {
    /// Removes the prompt of a settled ask and shows the next.
    pub(super) fn settled(
        &mut self,
        event: &StreamEvent,
        settled: &AskSettledEvent,
    ) -> Result<(), Error> {
        let is_news = !self.done.remove(&settled.ask_id);
        if self.how.json {
            self.view.event(self.screen, event)?;
        }
        let Some(at) = self.asks.iter().position(|p| p.id() == settled.ask_id) else {
            if is_news && !self.how.json {
                self.view.event(self.screen, event)?;
            }
            return Ok(());
        };
        self.asks.remove(at);
        if at > 0 {
            return Ok(());
        }
        self.settling = None;
        self.show(&format!("\n({})\n", view::settled(settled)));
        self.show_next()
    }

    /// Shows the next prompt, or held output.
    pub(super) fn show_next(&mut self) -> Result<(), Error> {
        if self.asks.is_empty() {
            return self.show_held();
        }
        self.show_prompt();
        Ok(())
    }

    /// Whether the run has neither a terminal nor other clients to answer.
    pub(super) fn is_alone(&self) -> bool {
        self.terminal.is_none() && self.how.answers == Answers::Person
    }

    /// Closes the questions of a finished step.
    pub(super) fn settle_asks(&mut self) -> Result<(), Error> {
        if !self.asks.is_empty() {
            self.asks.clear();
            self.settling = None;
            self.show("\n(already settled)\n");
        }
        self.show_held()
    }

    pub(super) fn show_held(&mut self) -> Result<(), Error> {
        for event in std::mem::take(&mut self.held) {
            self.view.event(self.screen, &event)?;
        }
        Ok(())
    }

    pub(super) async fn ask(&mut self, ask: AskUserEvent) -> Result<(), Error> {
        if self.how.bell {
            self.screen.bell();
        }
        if self.terminal.is_none() {
            return self.ask_nobody(ask).await;
        }
        let first = self.asks.is_empty();
        self.asks.push_back(Prompt::new(ask));
        if first {
            self.screen.end_line()?;
            self.show_prompt();
        }
        Ok(())
    }

    /// Answers a question without a terminal.
    async fn ask_nobody(&mut self, ask: AskUserEvent) -> Result<(), Error> {
        let approval = prompt::is_approval(&ask);
        if self.how.answers != Answers::Person {
            let how = if approval {
                "approve` or `crabtalk deny"
            } else {
                "reply"
            };
            self.screen.note(&format!(
                "crabtalk: waiting for an answer: `crabtalk asks`, then `crabtalk {how}`"
            ))?;
            return Ok(());
        }
        let content = if approval {
            "Deny: no terminal to approve it on"
        } else {
            NOBODY
        };
        self.reply(&ask.ask_id, content).await?;
        self.done.insert(ask.ask_id.clone());
        if approval {
            let wanted = prompt::wanted(&ask, self.agent());
            // The denial names the member whose call it is.
            let asking = ask.always.as_ref().map(|rule| rule.agent.as_str());
            let advice = advice::advice(&ask, asking.unwrap_or_else(|| self.agent()));
            self.screen.problem(&format!(
                "crabtalk: denied, since there is no terminal to ask on: {wanted}\n{advice}\n\
                 crabtalk: with --wait, another client can answer"
            ))?;
        } else {
            self.screen
                .note(&format!("crabtalk: answered \"{NOBODY}\": no terminal"))?;
        }
        Ok(())
    }

    pub(super) async fn line(&mut self, line: Option<&str>) -> Result<(), Error> {
        let Some(prompt) = self.asks.front_mut() else {
            return Ok(());
        };
        let content = match prompt.take(line) {
            Step::Show(text) => {
                self.show(&text);
                return Ok(());
            }
            Step::Next => {
                self.show_page();
                return Ok(());
            }
            Step::Answer(content) => content,
        };
        let id = prompt.id().to_owned();
        match self.reply(&id, &content).await {
            Ok(Replied::Taken) => {}
            Ok(Replied::TooLate) => self.show("(already answered by another client)\n"),
            Err(crabtalk_client::Error::Refused(status)) if line.is_some() => {
                self.show(&format!("{}\n", status.message));
                self.show_prompt();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.asks.pop_front();
        self.done.insert(id);
        self.show_next()
    }

    async fn reply(&self, ask_id: &str, content: &str) -> Result<Replied, crabtalk_client::Error> {
        let reply = ReplyToAsk {
            agent: self.how.agent.clone(),
            sender: self.how.sender.clone(),
            content: content.to_owned(),
            ask_id: Some(ask_id.to_owned()),
        };
        self.how.client.reply(reply).await
    }

    /// Shows the first pending ask from its beginning.
    pub(super) fn show_prompt(&mut self) {
        let size = self.terminal.as_ref().and_then(|terminal| terminal.size());
        let agent = self.agent().to_owned();
        if let Some(prompt) = self.asks.front_mut() {
            prompt.begin(&agent, size);
            self.show("\n");
            self.show_page();
        }
    }

    /// Shows a page of an approval, which takes input after a moment, or a question,
    /// which takes it at once.
    fn show_page(&mut self) {
        let agent = self.agent().to_owned();
        let Some(prompt) = self.asks.front_mut() else {
            return;
        };
        let (text, allows) = (prompt.text(&agent), prompt.allows());
        if allows {
            self.show(&text);
            self.settling = Some(Instant::now() + SETTLE);
        } else {
            self.forget();
            self.show(&text);
            self.settle();
        }
    }

    /// Discards input typed before the prompt.
    pub(super) fn settle(&mut self) {
        if self.settling.take().is_some() {
            self.forget();
        }
        if let Some(line) = self.asks.front().map(Prompt::line) {
            self.show(&line);
        }
    }

    fn forget(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.forget();
        }
    }

    pub(super) fn show(&mut self, text: &str) {
        if let Some(terminal) = &mut self.terminal {
            // A broken terminal has no input either.
            let _ = terminal.show(text);
        }
    }
}
