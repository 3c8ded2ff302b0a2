//! What a run asks, in a frame that nothing but this program draws.
//!
//! Invariants: nothing that was typed before the question stood for a while
//! answers it, and none of it is lost; nothing is allowed before its last row
//! was shown, and not by one key alone; each row that is not ours stands behind
//! the frame's edge.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "keys that mean nothing here change nothing"
)]

use crate::follow::SETTLE;
use crate::prompt::{Prompt, Step, is_approval};
use crabtalk_proto::{AskUserEvent, visible};
use crabtalk_render::{Line, Span, cut, diff, exact, theme, wrapped};
use crabtalk_screen::Composer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Instant;

const EDGE: &str = "\u{2503} ";
const TOP: &str = "\u{250f}\u{2501} ";
const BOTTOM: &str = "\u{2517}\u{2501} ";

/// Columns of the edge.
const EDGE_WIDTH: usize = 2;

/// Rows of the frame beside its content: top, remark, choices.
const OWN_ROWS: usize = 3;

/// Rows of content on the smallest terminal.
const MIN_CONTENT: usize = 3;

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// The question goes on.
    Not,
    /// Send this.
    With(String),
    /// Show all of it in the pager.
    Pager,
    /// The person wants to write something else.
    Aside,
}

/// How a question is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It was shown, and nothing answers it before this time.
    Settling(Instant),
    /// It waits behind what the person writes.
    Aside,
    /// An approval: what is chosen and not yet confirmed.
    Choosing(Option<Choice>),
    /// The reason of a denial, or the answer to a question.
    Writing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Once,
    Always,
    Prefix,
    Deny,
    Pager,
}

/// A question that is put.
pub(super) struct Asking {
    /// Whose conversation it belongs to.
    pub(super) agent: String,
    pub(super) sender: String,
    /// The run that asks, where it is one that this chat follows.
    pub(super) run: Option<u64>,
    pub(super) ask: AskUserEvent,
    /// Who asks.
    speaker: String,
    prompt: Prompt,
    stage: Option<Stage>,
    writing: Composer,
    /// The first row of the content that is shown.
    top: usize,
    /// Rows of the content that were shown, of how many.
    seen: usize,
    total: usize,
    room: usize,
    remark: String,
}

impl Asking {
    pub(super) fn new(ask: AskUserEvent, speaker: &str, agent: &str, sender: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            sender: sender.to_owned(),
            run: None,
            prompt: Prompt::new(ask.clone()),
            ask,
            speaker: speaker.to_owned(),
            stage: None,
            writing: Composer::default(),
            top: 0,
            seen: 0,
            total: 0,
            room: MIN_CONTENT,
            remark: String::new(),
        }
    }

    /// A question of a run that is followed: it ends with it.
    pub(super) fn of(self, run: Option<u64>) -> Self {
        Self { run, ..self }
    }

    pub(super) fn id(&self) -> &str {
        &self.ask.ask_id
    }

    /// It was drawn: from now on it settles.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.stage.get_or_insert(Stage::Settling(now + SETTLE));
    }

    /// Whether keys are for this question.
    pub(super) fn takes_keys(&self) -> bool {
        matches!(self.stage, Some(Stage::Choosing(_) | Stage::Writing))
    }

    /// When it begins to take keys.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        match self.stage {
            Some(Stage::Settling(at)) => Some(at),
            _ => None,
        }
    }

    /// Something was typed that is not for it: it waits again.
    pub(super) fn typed_elsewhere(&mut self, now: Instant) {
        if let Some(Stage::Settling(at)) = &mut self.stage {
            *at = now + SETTLE;
        }
    }

    /// It stood long enough.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.settles_at().is_some_and(|at| at <= now) {
            self.focus();
        }
    }

    /// The person turns to it.
    pub(super) fn focus(&mut self) {
        self.stage = Some(match is_approval(&self.ask) {
            true => Stage::Choosing(None),
            false => Stage::Writing,
        });
    }

    /// The answer was refused.
    pub(super) fn refused(&mut self, why: &str) {
        self.prompt = Prompt::new(self.ask.clone());
        self.focus();
        self.remark = why.to_owned();
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answered {
        self.remark.clear();
        match self.stage {
            Some(Stage::Choosing(chosen)) => self.choose(key, chosen),
            Some(Stage::Writing) => self.write(key),
            Some(Stage::Settling(_) | Stage::Aside) | None => Answered::Not,
        }
    }

    /// Takes what was pasted.
    pub(super) fn paste(&mut self, text: &str) {
        if self.stage == Some(Stage::Writing) {
            self.writing.paste(text);
        }
    }

    /// The beginning that may be allowed for good.
    fn prefix(&self) -> Option<&str> {
        let rule = self.ask.always.as_ref()?;
        Some(rule.prefix.as_str()).filter(|prefix| !prefix.is_empty())
    }

    fn choices(&self) -> Vec<(Choice, &'static str, &'static str)> {
        let mut choices = vec![(Choice::Once, "y", "allow once")];
        if self.ask.always.is_some() {
            choices.push((Choice::Always, "a", "always exactly this"));
        }
        if self.prefix().is_some() {
            choices.push((Choice::Prefix, "p", "always this prefix"));
        }
        choices.push((Choice::Deny, "n", "deny"));
        choices.push((Choice::Pager, "v", "view all"));
        choices
    }

    fn choose(&mut self, key: KeyEvent, chosen: Option<Choice>) -> Answered {
        let choices = self.choices();
        let at = choices
            .iter()
            .position(|(choice, ..)| Some(*choice) == chosen);
        let step = |by: usize| {
            let at = at.map_or(0, |at| (at + by) % choices.len());
            Some(choices[at].0)
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
                let choice = choices.iter().find(|(_, letter, _)| *letter == wanted);
                choice.map(|(choice, ..)| *choice)
            }
            _ => chosen,
        };
        match next {
            Some(Choice::Deny) => {
                self.stage = Some(Stage::Writing);
                return Answered::Not;
            }
            Some(Choice::Pager) if chosen != next => return Answered::Pager,
            _ => {}
        }
        if next.is_none() {
            "choose by y, a or n; Esc writes a message instead".clone_into(&mut self.remark);
        }
        self.stage = Some(Stage::Choosing(next));
        Answered::Not
    }

    fn confirm(&mut self, chosen: Option<Choice>) -> Answered {
        let content = match chosen {
            None => {
                "choose first: y, a or n".clone_into(&mut self.remark);
                return Answered::Not;
            }
            Some(Choice::Pager) => return Answered::Pager,
            Some(Choice::Deny) => "Deny",
            Some(Choice::Once) => "Allow once",
            Some(Choice::Always) => "Allow always",
            Some(Choice::Prefix) => "Allow prefix",
        };
        if self.seen < self.total {
            let more = self.total - self.seen;
            self.remark = format!("there is more to see: Space shows {more} more rows");
            return Answered::Not;
        }
        Answered::With(content.to_owned())
    }

    fn write(&mut self, key: KeyEvent) -> Answered {
        match key.code {
            KeyCode::Esc if is_approval(&self.ask) => {
                self.stage = Some(Stage::Choosing(None));
                Answered::Not
            }
            KeyCode::Esc => {
                self.stage = Some(Stage::Aside);
                Answered::Aside
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = self.writing.take();
                if is_approval(&self.ask) {
                    return Answered::With(match text.trim() {
                        "" => "Deny".to_owned(),
                        reason => format!("Deny: {reason}"),
                    });
                }
                match self.prompt.take(Some(&text)) {
                    Step::Answer(answer) => Answered::With(answer),
                    Step::Next => {
                        (self.top, self.seen) = (0, 0);
                        Answered::Not
                    }
                    Step::Show(_) => Answered::Not,
                }
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

    /// All that an answer allows, without a frame, for the pager.
    pub(super) fn whole(&self) -> String {
        let text = crate::prompt::wanted(&self.ask, &self.speaker);
        text + "\n"
    }

    /// The frame in so many rows, and the cursor in it.
    pub(super) fn rows(
        &mut self,
        width: usize,
        most: usize,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let inner = width.saturating_sub(EDGE_WIDTH + 1).max(12);
        let content = match is_approval(&self.ask) {
            true => self.approval(inner),
            false => self.question(inner),
        };
        let (last, cursor) = self.last_rows(inner);
        self.room = most
            .saturating_sub(OWN_ROWS - 1 + last.len())
            .max(MIN_CONTENT);
        self.total = content.len();
        self.top = self.top.min(self.total.saturating_sub(self.room));
        let until = (self.top + self.room).min(self.total);
        self.seen = self.seen.max(until);
        let mut rows = vec![self.head(width)];
        rows.extend(content[self.top..until].iter().cloned().map(edged));
        let remark = match (self.remark.as_str(), self.total - until) {
            ("", 0) if self.top == 0 => None,
            ("", 0) => Some("the end; Up shows what is above".to_owned()),
            ("", more) => Some(format!("{more} more rows: Space or Down shows them")),
            (remark, _) => Some(remark.to_owned()),
        };
        if let Some(remark) = remark {
            let remark = Line::styled(remark, theme::ASKS);
            rows.extend(wrapped(&remark, inner).into_iter().map(edged));
        }
        let above = rows.len();
        rows.extend(last);
        let cursor = cursor.map(|(row, column)| (above + row, column + EDGE_WIDTH));
        (rows, cursor)
    }

    fn head(&self, width: usize) -> Line {
        let speaker = visible(&self.speaker);
        let text = match is_approval(&self.ask) {
            true => match self.ask.lines {
                0 | 1 => format!("{speaker} wants to use {}", visible(&self.ask.tool)),
                lines => format!(
                    "{speaker} wants to use {} \u{b7} {lines} lines",
                    visible(&self.ask.tool)
                ),
            },
            false => format!("{speaker} asks"),
        };
        let mut line = Line::from(vec![Span::frame(TOP, theme::ASKS)]);
        line.push(Span::new(exact(&text), theme::ASKS.bold()));
        crabtalk_render::shorten(&line, width.saturating_sub(1))
    }

    fn approval(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let detail = match (self.ask.detail.as_str(), self.ask.questions.first()) {
            ("", Some(question)) => question.question.as_str(),
            (detail, _) => detail,
        };
        for line in visible(detail).lines() {
            lines.extend(cut(&Line::styled(exact(line), theme::BOLD), width));
        }
        if !self.ask.preview_kind.is_empty() {
            lines.push(Line::default());
            let preview = exact(&visible(&self.ask.preview));
            lines.extend(match self.ask.preview_kind.as_str() {
                "diff" => diff::unified(&preview, detail, width),
                _ => diff::whole(&preview, detail, width),
            });
        }
        lines.push(Line::default());
        let mut said = |text: String| {
            let line = Line::styled(exact(&visible(&text)).replace('\n', " "), theme::DIM);
            lines.extend(wrapped(&line, width));
        };
        if !self.ask.cwd.is_empty() {
            said(format!("in {}", self.ask.cwd));
        }
        if !self.ask.reason.is_empty() {
            said(format!("asked because: {}", self.ask.reason));
        }
        if let Some(rule) = &self.ask.always {
            let (tool, agent, sender, cwd) = (&rule.tool, &rule.agent, &rule.sender, &rule.cwd);
            let what = match rule.exact == self.ask.detail {
                true => "exactly this".to_owned(),
                false => format!("exactly: {}", rule.exact),
            };
            said(format!(
                "\"always\" stores: {tool} by {agent} for {sender} in {cwd}, {what}"
            ));
            if !rule.prefix.is_empty() {
                said(format!(
                    "\"prefix\" stores: {tool} by {agent} for {sender} in {cwd}, {} and whatever follows it",
                    rule.prefix
                ));
            }
        }
        lines
    }

    fn question(&self, width: usize) -> Vec<Line> {
        let Some(question) = self.prompt.question() else {
            return wrapped(&Line::plain("waits for a word from you"), width);
        };
        let mut lines = Vec::new();
        let asked = match question.header.as_str() {
            "" => question.question.clone(),
            header => format!("{header}: {}", question.question),
        };
        for line in visible(&asked).lines() {
            lines.extend(wrapped(&Line::styled(exact(line), theme::BOLD), width));
        }
        for (index, option) in question.options.iter().enumerate() {
            let mut line = Line::styled(format!("{}. ", index + 1), theme::ASKS)
                .with(exact(&visible(&option.label)), theme::PLAIN);
            if !option.description.is_empty() {
                line = line.with(
                    format!(" - {}", exact(&visible(&option.description))),
                    theme::DIM,
                );
            }
            lines.extend(wrapped(&line, width));
        }
        if question.multi_select {
            lines.push(Line::styled("several: separate them by commas", theme::DIM));
        }
        lines
    }

    /// The end of the frame: how to answer.
    fn last_rows(&self, width: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let mut bottom = Line::from(vec![Span::frame(BOTTOM, theme::ASKS)]);
        match self.stage {
            None | Some(Stage::Settling(_)) => {
                bottom.push(Span::new(
                    "a moment: what you type now is no answer",
                    theme::DIM,
                ));
                (vec![crabtalk_render::shorten(&bottom, width)], None)
            }
            Some(Stage::Aside) => {
                bottom.push(Span::new("Ctrl-O answers", theme::DIM));
                (vec![crabtalk_render::shorten(&bottom, width)], None)
            }
            Some(Stage::Writing) => {
                let hint = match is_approval(&self.ask) {
                    true => "why not? Enter denies, Esc goes back",
                    false => "your answer",
                };
                let (rows, cursor) = self.writing.rows(width, hint);
                let mut rows: Vec<Line> = rows.into_iter().map(edged).collect();
                let said = match is_approval(&self.ask) {
                    true => "deny",
                    false => "Enter answers, Esc writes a message instead",
                };
                bottom.push(Span::new(said, theme::DIM));
                rows.push(crabtalk_render::shorten(&bottom, width));
                (rows, Some(cursor))
            }
            Some(Stage::Choosing(chosen)) => (self.choice_rows(bottom, chosen, width), None),
        }
    }

    /// The choices, in as many rows as they take.
    fn choice_rows(&self, bottom: Line, chosen: Option<Choice>, width: usize) -> Vec<Line> {
        let short = width < 64;
        let mut rows: Vec<Vec<Span>> = vec![Vec::new()];
        let mut used = 0;
        for (choice, letter, name) in self.choices() {
            let name = match (short, choice) {
                (true, Choice::Once) => "once",
                (true, Choice::Always) => "always",
                (true, Choice::Prefix) => "prefix",
                (true, Choice::Pager) => "view",
                _ => name,
            };
            let style = match chosen == Some(choice) {
                true => theme::ASKS.bold().invert(),
                false => theme::PLAIN,
            };
            let said = match short {
                true => Span::new(format!("{letter} {name}"), style),
                false => Span::new(format!(" {letter} {name} "), style),
            };
            let between = Span::new("  ", theme::PLAIN);
            if used > 0 && used + between.width() + said.width() > width.saturating_sub(1) {
                rows.push(Vec::new());
                used = 0;
            }
            if let Some(row) = rows.last_mut() {
                if used > 0 {
                    used += between.width();
                    row.push(between);
                }
                used += said.width();
                row.push(said);
            }
        }
        let last = rows.pop().unwrap_or_default();
        let mut lines: Vec<Line> = rows.into_iter().map(|row| edged(Line::from(row))).collect();
        if chosen.is_some() {
            let confirm = Line::styled("Enter confirms", theme::ASKS);
            lines.insert(0, edged(confirm));
        }
        let mut end = bottom;
        for span in last {
            end.push(span);
        }
        lines.push(end);
        lines
    }
}

fn edged(line: Line) -> Line {
    line.behind(&[Span::frame(EDGE, theme::ASKS)])
}

#[cfg(test)]
mod tests;
