//! Handling of keys.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "keys that mean nothing here change nothing"
)]

use super::ask::Answered;
use super::calls::Pair;
use super::members::Wanted;
use super::popup::Popped;
use super::{Go, Live};
use crate::error::Error;
use crate::system;
use crabtalk_proto::{KillMsg, ReplyToAsk, code};
use crabtalk_render::screen::Drawing;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a second Ctrl-C to leave.
const LEAVES_WITHIN: Duration = Duration::from_secs(3);

impl Live<'_> {
    pub(super) fn event(&mut self, event: Event) -> Result<Go, Error> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Paste(text) => {
                self.paste(&text);
                Ok(Go::On)
            }
            Event::FocusGained | Event::FocusLost => {
                self.attention.focus(event == Event::FocusGained);
                Ok(Go::On)
            }
            Event::Resize(..) => {
                self.resized();
                Ok(Go::On)
            }
            _ => Ok(Go::On),
        }
    }

    fn paste(&mut self, text: &str) {
        match self.asks.front_mut() {
            Some(asking) if asking.takes_keys() => asking.paste(text),
            _ if self.picker.is_some() => {
                if let Some(picker) = &mut self.picker {
                    picker.paste(text);
                }
            }
            _ => {
                let image = super::image::pasted(text, &self.cwd);
                self.composer.paste(image.as_deref().unwrap_or(text));
                self.popup = None;
                self.announce();
            }
        }
    }

    fn key(&mut self, key: KeyEvent) -> Result<Go, Error> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('z') {
            self.suspend()?;
            return Ok(Go::On);
        }
        let asked = self.asks.front().is_some_and(super::Asking::takes_keys);
        if self.picker.is_some() && !asked {
            self.picker_key(key);
            return Ok(Go::On);
        }
        if self.members.is_open() && !asked {
            self.member_key(key);
            return Ok(Go::On);
        }
        if control {
            match key.code {
                KeyCode::Char('s') => self.show_members(),
                KeyCode::Char('c') => return Ok(self.interrupt()),
                KeyCode::Char('d') if self.composer.is_empty() => return Ok(Go::Leave),
                KeyCode::Char('l') => self.canvas.redraw(),
                KeyCode::Char('o') => self.next_ask(),
                KeyCode::Char('t') => self.show_whole()?,
                KeyCode::Char('v') => self.paste_image(),
                KeyCode::Char('g') if !self.composer.is_searching() => self.edit()?,
                _ => return self.other_key(key),
            }
            return Ok(Go::On);
        }
        self.other_key(key)
    }

    fn other_key(&mut self, key: KeyEvent) -> Result<Go, Error> {
        let rewinds = std::mem::take(&mut self.rewinds);
        if let Some(asking) = self.asks.front_mut() {
            if asking.takes_keys() {
                let answered = asking.key(key);
                return self.answered(answered);
            }
            asking.typed_elsewhere(Instant::now());
            // Enter does not send while a question appears.
            if key.code == KeyCode::Enter && asking.settles_at().is_some() {
                return Ok(Go::On);
            }
        }
        match self.popup_key(key) {
            Popped::Not => {}
            Popped::Handled => return Ok(Go::On),
            Popped::Submit => return self.submit(false),
        }
        let plain = key.modifiers.is_empty();
        match key.code {
            KeyCode::Esc if !self.composer.is_searching() && !self.composer.takes_escape() => {
                if self.shell.is_some() || self.runs.is_running() {
                    self.stop();
                } else if self.composer.is_empty() && self.asks.is_empty() {
                    match rewinds {
                        true => self.rewind_command(""),
                        false => self.rewinds = true,
                    }
                }
            }
            KeyCode::Enter if plain && !self.composer.is_searching() => return self.submit(false),
            KeyCode::Tab if plain => return self.submit(true),
            // A queued message returns to the composer.
            KeyCode::Up
                if plain
                    && self.composer.is_empty()
                    && !self.composer.is_searching()
                    && self.ask_back() => {}
            KeyCode::BackTab => {
                let said = self.mode.cycle();
                // The status line shows the mode.
                if self.runs.is_running() {
                    self.transcript.note(&said);
                }
            }
            _ => {
                if self.composer.key(key) {
                    self.complete();
                    self.announce();
                }
            }
        }
        Ok(Go::On)
    }

    /// Ctrl-S: shows the output of a member.
    fn show_members(&mut self) {
        match self.members.first(self.runs.number()) {
            Some(at) => self.show_member(at),
            None => self.transcript.note("no members are at work"),
        }
    }

    fn show_member(&mut self, at: usize) {
        if let Some(request) = self.members.open(at, &self.client, self.size.0) {
            let sender = request.sender.clone();
            self.request(request, move |live, page| {
                live.members.messages(&sender, page)
            });
        }
    }

    fn member_key(&mut self, key: KeyEvent) {
        match self.members.key(key) {
            Wanted::Nothing => {}
            Wanted::Other(at) => self.show_member(at),
            Wanted::Close => self.members.close(),
        }
    }

    fn answered(&mut self, answered: Answered) -> Result<Go, Error> {
        let Some(asking) = self.asks.front() else {
            return Ok(Go::On);
        };
        match answered {
            Answered::Not => {}
            Answered::With(content) => {
                let reply = ReplyToAsk {
                    agent: asking.agent.clone(),
                    sender: asking.sender.clone(),
                    content,
                    ask_id: Some(asking.id().to_owned()).filter(|id| !id.is_empty()),
                };
                let (id, client) = (asking.id().to_owned(), self.client.clone());
                self.answered.insert(id.clone());
                let replied = async move { client.reply(reply).await };
                self.call(replied, move |live, replied| live.replied(&id, replied));
            }
            Answered::Pager => {
                let text = asking.whole();
                self.page(&text)?;
            }
            Answered::Aside => {
                let own = asking.agent == self.pair.agent && asking.sender == self.pair.sender;
                if !own {
                    // The ask remains in `others`.
                    self.asks.pop_front();
                }
            }
        }
        Ok(Go::On)
    }

    /// Cancels the user's command or the run; questions stay open.
    fn stop(&mut self) {
        match &self.shell {
            Some((_, shell)) => shell.abort(),
            None => self.kill(),
        }
    }

    pub(super) fn kill(&mut self) {
        if !self.killing {
            self.killing = true;
            self.since = Instant::now();
            let Pair { agent, sender } = self.pair.clone();
            self.request(KillMsg { agent, sender }, |live, killed| {
                let Err(error) = killed else { return };
                live.killing = false;
                // The run ended on its own.
                if error.code() != Some(code::NOT_FOUND) {
                    live.transcript.problem(&error.to_string());
                }
            });
        }
    }

    /// Ctrl-C: clears the composer, else cancels the run; a second one leaves.
    fn interrupt(&mut self) -> Go {
        if self.leaving.is_some() {
            return Go::Leave;
        }
        if !self.composer.is_empty() && self.asks.is_empty() {
            self.composer.clear();
            self.popup = None;
            return Go::On;
        }
        self.leaving = Some(Instant::now() + LEAVES_WITHIN);
        if self.shell.is_some() || self.runs.is_running() {
            self.stop();
            self.transcript.note("cancelling; Ctrl-C again leaves");
        } else {
            self.transcript.note("Ctrl-C again leaves, or Ctrl-D");
        }
        Go::On
    }

    /// Ctrl-T: the last reasoning and tool results in full.
    fn show_whole(&mut self) -> Result<(), Error> {
        let mut text = String::new();
        if !self.transcript.thought.is_empty() {
            text.push_str("Thought:\n\n");
            text.push_str(&crabtalk_render::clean(&self.transcript.thought));
            text.push_str("\n\n");
        }
        text.push_str(&self.transcript.tools.answers);
        if text.is_empty() {
            self.transcript.note("no reasoning or tool results yet");
            return Ok(());
        }
        self.page(&text)
    }

    /// Shows a text in the pager.
    pub(super) fn page(&mut self, text: &str) -> Result<(), Error> {
        let pager = std::env::var("PAGER")
            .ok()
            .filter(|pager| !pager.is_empty());
        let pager = pager.unwrap_or_else(|| "less".to_owned());
        self.lend(|| {
            let child = Command::new("sh")
                .args(["-c", &pager])
                .stdin(Stdio::piped())
                .spawn();
            let mut child = child?;
            if let Some(mut stdin) = child.stdin.take() {
                // A closed pager stops reading.
                let _ = stdin.write_all(text.as_bytes());
            }
            child.wait().map(|_| ())
        })
        .map(|shown| {
            if let Err(error) = shown {
                self.transcript
                    .problem(&format!("cannot start {pager}: {error}; set PAGER"));
            }
        })
    }

    /// Ctrl-G: edits the text in the editor.
    fn edit(&mut self) -> Result<(), Error> {
        let before = self.composer.text().to_owned();
        let home = self.context.home.clone();
        let edited = self.lend(|| crate::editor::Written::get(&home, None, "message", &before))?;
        match edited {
            Ok(written) => {
                let text = written.text.trim_end().to_owned();
                written.settle(Ok(()))?;
                self.composer.set(&text);
                self.announce();
            }
            Err(error) => self.transcript.problem(&error.to_string()),
        }
        Ok(())
    }

    /// Ctrl-Z: suspends the chat; runs continue.
    fn suspend(&mut self) -> Result<(), Error> {
        self.suspended = true;
        self.lend(system::suspend)?
            .map_err(|e| Error::io("leave the terminal to the shell", &e))
    }

    /// Resumes after a stop. If the chat was stopped by a signal, the terminal may have
    /// changed.
    pub(super) fn resume(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.suspended) {
            self.canvas.begin_anew();
            self.lend(|| ())?;
        }
        self.dirty = true;
        Ok(())
    }

    /// Lends the terminal to a program.
    fn lend<T>(&mut self, borrower: impl FnOnce() -> T) -> Result<T, Error> {
        let told = |e: std::io::Error| Error::io("use the terminal", &e);
        self.fit();
        let above = self.transcript.take();
        self.canvas
            .draw(&above, &Drawing::default())
            .map_err(told)?;
        self.canvas.clear().map_err(told)?;
        let done = self.raw.lend(borrower).map_err(told)?;
        self.attention.forget_title();
        self.resized();
        Ok(done)
    }
}
