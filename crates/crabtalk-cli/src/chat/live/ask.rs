//! Questions and approvals in a frame.
//!
//! Invariants: keys typed before a question was visible for a moment do not answer it
//! and stay in the composer; an approval needs its last row on the screen and more than
//! one key; each row of foreign text follows the edge of the frame.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "keys that mean nothing here change nothing"
)]

mod frame;
mod questions;

use crate::follow::SETTLE;
use crate::prompt::{Answer, is_approval, keys, offered};
use crabtalk_proto::AskUserEvent;
use crabtalk_render::screen::Composer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use questions::Questions;
use std::time::Instant;

/// Minimum rows of content.
const MIN_CONTENT: usize = 3;

/// Result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// No answer yet.
    Not,
    /// The answer to send.
    With(String),
    /// Show the whole text in the pager.
    Pager,
    /// The user writes a message first.
    Aside,
}

/// State of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Visible; takes keys from this time.
    Settling(Instant),
    /// Waits while the user types a message.
    Aside,
    /// A chosen answer of an approval, not confirmed.
    Choosing(Option<Choice>),
    /// The reason of a denial, or the answer to a question.
    Writing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Answer(Answer),
    Pager,
}

impl Choice {
    /// Keys of the choice; the first is shown.
    fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Answer(answer) => answer.keys(),
            Self::Pager => ["v", "v"],
        }
    }
}

/// A question in its frame.
pub(super) struct Asking {
    /// Agent and sender of the conversation.
    pub(super) agent: String,
    pub(super) sender: String,
    /// Number of a followed run that asks.
    pub(super) run: Option<u64>,
    pub(super) ask: AskUserEvent,
    /// The asking agent.
    speaker: String,
    questions: Questions,
    stage: Option<Stage>,
    writing: Composer,
    /// Index of the first visible row.
    top: usize,
    /// Number of rows shown so far, and of all rows.
    seen: usize,
    total: usize,
    room: usize,
    /// Whether the highlighted option is scrolled into view.
    follows: bool,
    /// Whether the last frame had room for all of its rows.
    pub(super) fits: bool,
    remark: String,
}

impl Asking {
    pub(super) fn new(ask: AskUserEvent, speaker: &str, agent: &str, sender: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            sender: sender.to_owned(),
            run: None,
            questions: Questions::new(&ask.questions),
            ask,
            speaker: speaker.to_owned(),
            stage: None,
            writing: Composer::default(),
            top: 0,
            seen: 0,
            total: 0,
            room: MIN_CONTENT,
            follows: false,
            fits: true,
            remark: String::new(),
        }
    }

    /// Ties the question to a run, whose end removes it.
    pub(super) fn of(self, run: Option<u64>) -> Self {
        Self { run, ..self }
    }

    pub(super) fn id(&self) -> &str {
        &self.ask.ask_id
    }

    /// Records that the question is drawn, which starts its waiting time.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.stage.get_or_insert(Stage::Settling(now + SETTLE));
    }

    /// Whether the question takes keys.
    pub(super) fn takes_keys(&self) -> bool {
        matches!(self.stage, Some(Stage::Choosing(_) | Stage::Writing))
    }

    /// When the question takes keys.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        match self.stage {
            Some(Stage::Settling(at)) => Some(at),
            _ => None,
        }
    }

    /// Restarts the waiting time, since the user types elsewhere.
    pub(super) fn typed_elsewhere(&mut self, now: Instant) {
        if let Some(Stage::Settling(at)) = &mut self.stage {
            *at = now + SETTLE;
        }
    }

    /// Accepts keys from now on.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.settles_at().is_some_and(|at| at <= now) {
            self.focus();
        }
    }

    /// Selects the question.
    pub(super) fn focus(&mut self) {
        self.stage = Some(match is_approval(&self.ask) {
            true => Stage::Choosing(None),
            false => Stage::Writing,
        });
    }

    /// Shows that the answer was refused.
    pub(super) fn refused(&mut self, why: &str) {
        self.questions = Questions::new(&self.ask.questions);
        self.focus();
        self.remark = why.to_owned();
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answered {
        self.remark.clear();
        match self.stage {
            Some(Stage::Choosing(chosen)) => self.choose(key, chosen),
            Some(Stage::Writing) => self.write(key),
            Some(Stage::Settling(_) | Stage::Aside) | None => Answered::Not,
        }
    }

    /// Handles a paste.
    pub(super) fn paste(&mut self, text: &str) {
        match (self.stage, is_approval(&self.ask)) {
            (Some(Stage::Writing), true) => self.writing.paste(text),
            (Some(Stage::Writing), false) => self.questions.paste(text),
            _ => {}
        }
    }

    /// The choices of an approval, and the pager.
    fn choices(&self) -> Vec<Choice> {
        let offered = offered(&self.ask).into_iter().map(Choice::Answer);
        offered.chain([Choice::Pager]).collect()
    }

    fn choose(&mut self, key: KeyEvent, chosen: Option<Choice>) -> Answered {
        let choices = self.choices();
        let at = choices.iter().position(|choice| Some(*choice) == chosen);
        let step = |by: usize| {
            let at = at.map_or(0, |at| (at + by) % choices.len());
            Some(choices[at])
        };
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let next = match key.code {
            KeyCode::Esc => {
                self.stage = Some(Stage::Aside);
                return Answered::Aside;
            }
            KeyCode::Enter => return self.confirm(chosen),
            KeyCode::Right | KeyCode::Tab => step(1),
            KeyCode::Left | KeyCode::BackTab => step(choices.len() - 1),
            KeyCode::Up => return self.scroll(false, 1),
            KeyCode::Down => return self.scroll(true, 1),
            KeyCode::PageUp => return self.scroll(false, self.room),
            KeyCode::PageDown | KeyCode::Char(' ') => return self.scroll(true, self.room),
            KeyCode::Char(c) if plain => {
                let wanted = c.to_ascii_lowercase().to_string();
                let mut choices = choices.iter().copied();
                choices.find(|choice| choice.keys().contains(&wanted.as_str()))
            }
            _ => chosen,
        };
        match next {
            Some(Choice::Answer(Answer::Deny)) => {
                self.stage = Some(Stage::Writing);
                return Answered::Not;
            }
            Some(Choice::Pager) if chosen != next => return Answered::Pager,
            _ => {}
        }
        if next.is_none() {
            let keys = keys(&offered(&self.ask));
            self.remark = format!("choose {keys}; Esc to write a message first");
        }
        self.stage = Some(Stage::Choosing(next));
        Answered::Not
    }

    fn confirm(&mut self, chosen: Option<Choice>) -> Answered {
        let answer = match chosen {
            None => {
                self.remark = format!("choose first: {}", keys(&offered(&self.ask)));
                return Answered::Not;
            }
            Some(Choice::Pager) => return Answered::Pager,
            Some(Choice::Answer(answer)) => answer,
        };
        if !self.fits {
            self.remark =
                "the terminal is too small to allow this: enlarge it, or deny with n".to_owned();
            return Answered::Not;
        }
        if self.seen < self.total {
            let more = self.total - self.seen;
            self.remark = format!("Space shows {more} more rows");
            return Answered::Not;
        }
        Answered::With(answer.label().to_owned())
    }

    /// Handles a key while the reason of a denial or an answer is written.
    fn write(&mut self, key: KeyEvent) -> Answered {
        let is_approval = is_approval(&self.ask);
        match key.code {
            KeyCode::Esc if is_approval => {
                self.stage = Some(Stage::Choosing(None));
                Answered::Not
            }
            KeyCode::Esc => {
                self.stage = Some(Stage::Aside);
                Answered::Aside
            }
            KeyCode::PageUp => self.scroll(false, self.room),
            KeyCode::PageDown => self.scroll(true, self.room),
            _ if !is_approval => {
                self.follows = true;
                let reply = self.questions.key(key);
                reply.map_or(Answered::Not, Answered::With)
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = self.writing.take();
                Answered::With(match text.trim() {
                    "" => "Deny".to_owned(),
                    reason => format!("Deny: {reason}"),
                })
            }
            _ => {
                self.writing.key(key);
                Answered::Not
            }
        }
    }

    fn scroll(&mut self, down: bool, by: usize) -> Answered {
        let last = self.total.saturating_sub(self.room);
        self.top = match down {
            true => (self.top + by).min(last),
            false => self.top.saturating_sub(by),
        };
        Answered::Not
    }

    /// The whole text for the pager.
    pub(super) fn whole(&self) -> String {
        let text = crate::prompt::wanted(&self.ask, &self.speaker);
        text + "\n"
    }
}

#[cfg(test)]
mod tests;
