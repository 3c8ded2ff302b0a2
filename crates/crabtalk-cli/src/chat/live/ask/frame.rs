//! The frame of a question, row by row.

use super::{Asking, Choice, MIN_CONTENT, Stage};
use crate::prompt::{Answer, is_approval, lasting};
use anstyle::Style;
use crabtalk_proto::visible;
use crabtalk_render::{Line, Span, cut, diff, exact, theme, wrapped};

const EDGE: &str = "\u{2503} ";

const TOP: &str = "\u{250f}\u{2501} ";

const BOTTOM: &str = "\u{2517}\u{2501} ";

/// Width of the edge.
const EDGE_WIDTH: usize = 2;

/// Rows in addition to the content: top, note, choices.
const OWN_ROWS: usize = 3;

impl Asking {
    /// The rows of the frame and the cursor.
    pub(in crate::chat::live) fn rows(
        &mut self,
        width: usize,
        most: usize,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let inner = width.saturating_sub(EDGE_WIDTH + 1).max(12);
        let (content, highlighted) = match is_approval(&self.ask) {
            true => (self.approval(inner), None),
            false => self.questions.rows(inner),
        };
        let (last, cursor) = self.last_rows(inner);
        self.room = most
            .saturating_sub(OWN_ROWS - 1 + last.len())
            .max(MIN_CONTENT);
        self.total = content.len();
        if let (Some(row), true) = (highlighted, std::mem::take(&mut self.follows)) {
            self.top = self.top.clamp((row + 1).saturating_sub(self.room), row);
        }
        self.top = self.top.min(self.total.saturating_sub(self.room));
        let until = (self.top + self.room).min(self.total);
        self.seen = self.seen.max(until);
        let mut rows = vec![self.head(width)];
        let content = content[self.top..until].iter().cloned();
        rows.extend(content.map(|line| self.edged(line)));
        let remark = match (self.remark.as_str(), self.total - until) {
            ("", 0) if self.top == 0 => None,
            ("", 0) => Some(format!(
                "end; {} shows the rows above",
                self.scroll_keys().0
            )),
            ("", more) => Some(format!(
                "{more} more rows: {} shows them",
                self.scroll_keys().1
            )),
            (remark, _) => Some(remark.to_owned()),
        };
        if let Some(remark) = remark {
            let remark = wrapped(&Line::styled(remark, self.style()), inner);
            rows.extend(remark.into_iter().map(|line| self.edged(line)));
        }
        let above = rows.len();
        rows.extend(last);
        let cursor = cursor.map(|(row, column)| (above + row, column + EDGE_WIDTH));
        (rows, cursor)
    }

    fn head(&self, width: usize) -> Line {
        let speaker = visible(&self.speaker);
        let text = match is_approval(&self.ask) {
            true => {
                // Placed first, since long names are cut off.
                let outside = match self.ask.outside {
                    true => "outside the sandbox: ",
                    false => "",
                };
                let lines = match self.ask.lines {
                    0 | 1 => String::new(),
                    lines => format!(" \u{b7} {lines} lines"),
                };
                let tool = visible(&self.ask.tool);
                format!("{outside}{speaker} wants to use {tool}{lines}")
            }
            false => format!("{speaker} asks"),
        };
        let mut line = Line::from(vec![Span::frame(TOP, self.style())]);
        line.push(Span::new(exact(&text), self.style().bold()));
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
            said(format!("reason: {}", self.ask.reason));
        }
        lasting(&self.ask).into_iter().for_each(said);
        lines
    }

    /// Keys that scroll up and down.
    fn scroll_keys(&self) -> (&'static str, &'static str) {
        match is_approval(&self.ask) {
            true => ("Up", "Space or Down"),
            false => ("PageUp", "PageDown"),
        }
    }

    /// The last rows: choices.
    fn last_rows(&self, width: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let mut bottom = Line::from(vec![Span::frame(BOTTOM, self.style())]);
        match self.stage {
            None | Some(Stage::Settling(_)) => {
                bottom.push(Span::new(
                    "wait a moment: keys typed now do not answer",
                    theme::DIM,
                ));
                (vec![crabtalk_render::shorten(&bottom, width)], None)
            }
            Some(Stage::Aside) => {
                bottom.push(Span::new("Ctrl-O answers", theme::DIM));
                (vec![crabtalk_render::shorten(&bottom, width)], None)
            }
            Some(Stage::Writing) => {
                let hint = "Reason (optional); Enter denies, Esc goes back";
                let (rows, cursor) = match is_approval(&self.ask) {
                    true => self.writing.rows(width, hint),
                    false => self.questions.text_rows(width),
                };
                let edged = rows.into_iter().map(|line| self.edged(line));
                let mut rows: Vec<Line> = edged.collect();
                let said = match is_approval(&self.ask) {
                    true => "deny".to_owned(),
                    false => self.questions.keys(),
                };
                bottom.push(Span::new(said, theme::DIM));
                rows.push(crabtalk_render::shorten(&bottom, width));
                (rows, Some(cursor))
            }
            Some(Stage::Choosing(chosen)) => (self.choice_rows(bottom, chosen, width), None),
        }
    }

    /// The choices, wrapped.
    fn choice_rows(&self, bottom: Line, chosen: Option<Choice>, width: usize) -> Vec<Line> {
        let short = width < 64;
        let mut rows: Vec<Vec<Span>> = vec![Vec::new()];
        let mut used = 0;
        for choice in self.choices() {
            let (letter, name) = (choice.keys()[0], name(choice, short));
            let style = match chosen == Some(choice) {
                true => self.style().bold().invert(),
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
        let rows = rows.into_iter().map(|row| self.edged(Line::from(row)));
        let mut lines: Vec<Line> = rows.collect();
        if chosen.is_some() {
            let confirm = Line::styled("Enter confirms", self.style());
            lines.insert(0, self.edged(confirm));
        }
        let mut end = bottom;
        for span in last {
            end.push(span);
        }
        lines.push(end);
        lines
    }

    /// Red for calls outside the sandbox.
    fn style(&self) -> Style {
        match self.ask.outside {
            true => theme::BAD,
            false => theme::ASKS,
        }
    }

    fn edged(&self, line: Line) -> Line {
        line.behind(&[Span::frame(EDGE, self.style())])
    }
}

/// Label of a choice; `short` in narrow frames.
fn name(choice: Choice, short: bool) -> &'static str {
    match (choice, short) {
        (Choice::Answer(Answer::Once), false) => "allow once",
        (Choice::Answer(Answer::Once), true) => "once",
        (Choice::Answer(Answer::Always), false) => "always exactly this",
        (Choice::Answer(Answer::Always), true) => "always",
        (Choice::Answer(Answer::Prefix), false) => "always this prefix",
        (Choice::Answer(Answer::Prefix), true) => "prefix",
        (Choice::Answer(Answer::Conversation), false) => "for this conversation",
        (Choice::Answer(Answer::Conversation), true) => "conversation",
        (Choice::Answer(Answer::Deny), _) => "deny",
        (Choice::Pager, false) => "view all",
        (Choice::Pager, true) => "view",
    }
}
