//! The questions of an ask as tabs, answered by arrow keys, numbers or text.
//!
//! Invariants: typing never confirms; an ask is answered once all of its questions are,
//! in one reply.

use crate::prompt::chosen;
use crabtalk_proto::{AskQuestion, visible};
use crabtalk_render::screen::Composer;
use crabtalk_render::{Line, Span, exact, theme, wrapped};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value};

/// Maximum width of a tab's name.
const MAX_NAME: usize = 20;

/// A question with the typed text and the chosen options.
#[derive(Default)]
struct Tab {
    question: AskQuestion,
    writing: Composer,
    /// The highlighted option.
    option: usize,
    /// Whether the text is the answer rather than an option.
    is_text: bool,
    /// Marked options, if several may be chosen.
    marked: Vec<usize>,
    answer: Option<Value>,
}

/// Questions that are asked together.
#[derive(Default)]
pub(super) struct Questions {
    tabs: Vec<Tab>,
    at: usize,
}

impl Tab {
    fn new(question: AskQuestion) -> Self {
        Self {
            is_text: question.options.is_empty(),
            question,
            ..Self::default()
        }
    }

    /// The option whose number was typed.
    fn numbered(&self) -> Option<usize> {
        let number: usize = self.writing.text().trim().parse().ok()?;
        let index = number.checked_sub(1)?;
        (index < self.question.options.len()).then_some(index)
    }

    /// Interprets the typed text: a number selects an option, other text is the answer.
    fn typed(&mut self) {
        match (self.numbered(), self.writing.text().trim()) {
            (Some(option), _) => (self.option, self.is_text) = (option, false),
            (None, "") => self.is_text = self.question.options.is_empty(),
            (None, _) => self.is_text = true,
        }
    }

    fn step(&mut self, down: bool) {
        let count = self.question.options.len();
        if self.numbered().is_some() {
            self.writing = Composer::default();
        }
        // The text comes after the options.
        let at = if self.is_text { count } else { self.option };
        let by = if down { 1 } else { count };
        let next = (at + by) % (count + 1);
        self.is_text = next == count;
        self.option = if self.is_text { self.option } else { next };
    }

    fn mark(&mut self) {
        match self.marked.iter().position(|option| *option == self.option) {
            Some(at) => {
                self.marked.remove(at);
            }
            None => self.marked.push(self.option),
        }
        self.marked.sort_unstable();
        if self.numbered().is_some() {
            self.writing = Composer::default();
        }
    }

    /// The answer that Enter would give; `None` if there is none yet.
    fn confirmed(&mut self) -> Option<Value> {
        if self.numbered().is_some() {
            self.writing = Composer::default();
        }
        let label = |option: &usize| self.question.options.get(*option).map(|o| o.label.clone());
        let mut text = String::new();
        if self.is_text {
            text = self.writing.text().trim().to_owned();
            if !text.is_empty() {
                text = self.writing.take().trim().to_owned();
            }
        }
        if !self.question.multi_select {
            return match self.is_text {
                true => (!text.is_empty()).then_some(Value::String(text)),
                false => label(&self.option).map(Value::String),
            };
        }
        let mut items: Vec<Value> = self
            .marked
            .iter()
            .filter_map(label)
            .map(Value::String)
            .collect();
        if !text.is_empty()
            && let Value::Array(more) = chosen(&self.question, &text)
        {
            items.extend(more);
        }
        if items.is_empty() && !self.is_text {
            items.extend(label(&self.option).map(Value::String));
        }
        (!items.is_empty()).then_some(Value::Array(items))
    }

    /// A short name, used if there are several questions.
    fn name(&self) -> String {
        let name = match self.question.header.as_str() {
            "" => self.question.question.as_str(),
            header => header,
        };
        let name = exact(&visible(name)).replace(['\n', '\t'], " ");
        let line = crabtalk_render::shorten(&Line::plain(name), MAX_NAME);
        line.text()
    }
}

impl Questions {
    pub(super) fn new(questions: &[AskQuestion]) -> Self {
        Self {
            tabs: questions.iter().cloned().map(Tab::new).collect(),
            at: 0,
        }
    }

    /// Handles a key; returns the reply once all questions are answered.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<String> {
        let count = self.tabs.len();
        let tab = self.tabs.get_mut(self.at)?;
        let is_empty = tab.writing.is_empty();
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return self.confirm(),
            KeyCode::Tab => self.at = (self.at + 1) % count,
            KeyCode::BackTab => self.at = (self.at + count - 1) % count,
            KeyCode::Right if is_empty => self.at = (self.at + 1) % count,
            KeyCode::Left if is_empty => self.at = (self.at + count - 1) % count,
            KeyCode::Down if !tab.question.options.is_empty() => tab.step(true),
            KeyCode::Up if !tab.question.options.is_empty() => tab.step(false),
            KeyCode::Char(' ') if plain && tab.question.multi_select && !tab.is_text => tab.mark(),
            _ => {
                tab.writing.key(key);
                tab.typed();
            }
        }
        None
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(tab) = self.tabs.get_mut(self.at) {
            tab.writing.paste(text);
            tab.typed();
        }
    }

    /// Handles Enter: answers the shown question and goes to the next open one.
    fn confirm(&mut self) -> Option<String> {
        let tab = self.tabs.get_mut(self.at)?;
        tab.answer = Some(tab.confirmed()?);
        let count = self.tabs.len();
        let after = (1..count).map(|by| (self.at + by) % count);
        match after.into_iter().find(|at| self.tabs[*at].answer.is_none()) {
            Some(open) => {
                self.at = open;
                None
            }
            None => Some(self.reply()),
        }
    }

    /// The reply: one answer as text, several as an object from question to answer.
    fn reply(&self) -> String {
        if let [only] = &self.tabs[..]
            && let Some(Value::String(answer)) = &only.answer
        {
            return answer.clone();
        }
        let answers = self.tabs.iter().filter_map(|tab| {
            let answer = tab.answer.clone()?;
            Some((tab.question.question.clone(), answer))
        });
        Value::Object(answers.collect::<Map<_, _>>()).to_string()
    }

    /// The rows, and the index of the last row of the highlighted option.
    pub(super) fn rows(&self, width: usize) -> (Vec<Line>, Option<usize>) {
        let Some(tab) = self.tabs.get(self.at) else {
            return (wrapped(&Line::plain("waits for your answer"), width), None);
        };
        let mut lines = self.tab_row(width);
        let asked = match tab.question.header.as_str() {
            "" => tab.question.question.clone(),
            header => format!("{header}: {}", tab.question.question),
        };
        for line in visible(&asked).lines() {
            lines.extend(wrapped(&Line::styled(exact(line), theme::BOLD), width));
        }
        let mut highlighted = None;
        for (index, option) in tab.question.options.iter().enumerate() {
            let is_chosen = !tab.is_text && tab.option == index;
            let (mark, style) = match is_chosen {
                true => ("\u{203a} ", theme::HEADING),
                false => ("  ", theme::PLAIN),
            };
            let mut line = Line::default();
            if tab.question.multi_select {
                let marked = tab.marked.contains(&index);
                line = line.with(if marked { "[x] " } else { "[ ] " }, theme::ASKS);
            }
            line = line
                .with(format!("{}. ", index + 1), theme::ASKS)
                .with(exact(&visible(&option.label)), style);
            if !option.description.is_empty() {
                let about = format!(" - {}", exact(&visible(&option.description)));
                line = line.with(about, theme::DIM);
            }
            let mut lead = Span::new(mark, theme::HEADING);
            for part in wrapped(&line, width.saturating_sub(2)) {
                lines.push(part.behind(&[lead]));
                lead = Span::new("  ", theme::PLAIN);
            }
            if is_chosen {
                highlighted = Some(lines.len() - 1);
            }
        }
        (lines, highlighted)
    }

    /// The row of question names; answered questions are marked.
    fn tab_row(&self, width: usize) -> Vec<Line> {
        if self.tabs.len() < 2 {
            return Vec::new();
        }
        let mut line = Line::default();
        for (index, tab) in self.tabs.iter().enumerate() {
            let mark = if tab.answer.is_some() {
                " \u{2713}"
            } else {
                ""
            };
            let text = format!("{}{mark}", tab.name());
            let style = match index == self.at {
                true => theme::HEADING.invert(),
                false => theme::DIM,
            };
            if index > 0 {
                line.push(Span::new(" | ", theme::DIM));
            }
            line.push(Span::new(text, style));
        }
        wrapped(&line, width)
    }

    /// The rows of the text and its cursor.
    pub(super) fn text_rows(&self, width: usize) -> (Vec<Line>, (usize, usize)) {
        match self.tabs.get(self.at) {
            Some(tab) => tab.writing.rows(width, tab.hint()),
            None => Composer::default().rows(width, "your answer"),
        }
    }

    /// The hint about keys.
    pub(super) fn keys(&self) -> String {
        let tab = self.tabs.get(self.at);
        let options = tab.is_some_and(|tab| !tab.question.options.is_empty());
        let several = tab.is_some_and(|tab| tab.question.multi_select);
        let mut keys = vec!["Enter answers"];
        if options {
            keys.push("Up, Down or a number chooses");
        }
        if several {
            keys.push("Space marks");
        }
        if self.tabs.len() > 1 {
            keys.push("Tab switches");
        }
        keys.push("Esc writes a message instead");
        keys.join(" \u{b7} ")
    }
}

impl Tab {
    fn hint(&self) -> &'static str {
        match self.question.options.is_empty() {
            true => "your answer",
            false => "or type another answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::AskOption;

    fn question(text: &str, labels: &[&str], multi_select: bool) -> AskQuestion {
        let options = labels.iter().map(|label| AskOption {
            label: (*label).into(),
            ..AskOption::default()
        });
        AskQuestion {
            question: text.into(),
            options: options.collect(),
            multi_select,
            ..AskQuestion::default()
        }
    }

    /// Types: `\n` is Enter, `\t` Tab, `v^<>` arrows, others characters.
    fn typed(questions: &mut Questions, keys: &str) -> Option<String> {
        let mut last = None;
        for c in keys.chars() {
            assert_eq!(last, None, "answered before {c:?} of {keys:?}");
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{8}' => KeyCode::Backspace,
                'v' => KeyCode::Down,
                '^' => KeyCode::Up,
                '<' => KeyCode::Left,
                '>' => KeyCode::Right,
                c => KeyCode::Char(c),
            };
            last = questions.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        last
    }

    #[test]
    fn one_question_takes_arrows_numbers_and_text() {
        let colors = [question("Which?", &["Red", "Blue", "10"], false)];
        for (keys, want) in [
            ("\n", Some("Red")),
            ("v\n", Some("Blue")),
            ("^^\n", Some("10")),
            ("2\n", Some("Blue")),
            ("2v\n", Some("10")),
            ("2\u{8}\n", Some("Blue")),
            ("2 apples\n", Some("2 apples")),
            ("9\n", Some("9")),
            ("green\n", Some("green")),
            ("green^\n", Some("10")),
            // The text is chosen and empty.
            ("^\n", None),
            ("^x\n", Some("x")),
            ("3", None),
        ] {
            let mut questions = Questions::new(&colors);
            assert_eq!(typed(&mut questions, keys).as_deref(), want, "{keys:?}");
        }
        let mut open = Questions::new(&[question("What?", &[], false)]);
        assert_eq!(typed(&mut open, "\n"), None, "no answer");
        assert_eq!(
            typed(&mut open, "all of it\n").as_deref(),
            Some("all of it")
        );
    }

    #[test]
    fn several_options_are_marked_by_space() {
        let many = [question("Which?", &["A", "B", "C"], true)];
        for (keys, want) in [
            ("\n", r#"{"Which?":["A"]}"#),
            (" vv \n", r#"{"Which?":["A","C"]}"#),
            (" v  \n", r#"{"Which?":["A"]}"#),
            ("3 1 \n", r#"{"Which?":["A","C"]}"#),
            ("1, c,other\n", r#"{"Which?":["A","c","other"]}"#),
            (" and more\n", r#"{"Which?":["A","and more"]}"#),
        ] {
            let mut questions = Questions::new(&many);
            assert_eq!(
                typed(&mut questions, keys).as_deref(),
                Some(want),
                "{keys:?}"
            );
        }
    }

    #[test]
    fn tabs_are_answered_in_any_order_and_sent_together() {
        let asked = [
            question("Which?", &["Red", "Blue"], false),
            question("How many?", &[], false),
            question("Why?", &["A", "B"], false),
        ];
        let mut questions = Questions::new(&asked);
        let tabs = |questions: &Questions| questions.rows(70).0[0].text();
        assert_eq!(tabs(&questions), "Which? | How many? | Why?");
        assert_eq!(typed(&mut questions, "\t7\n"), None);
        assert_eq!(tabs(&questions), "Which? | How many? \u{2713} | Why?");
        // Goes to the next open question, then back to the first.
        assert_eq!(typed(&mut questions, "2\n"), None);
        assert_eq!(
            tabs(&questions),
            "Which? | How many? \u{2713} | Why? \u{2713}"
        );
        // Changes an answer.
        assert_eq!(typed(&mut questions, "<1\n"), None);
        assert_eq!(
            typed(&mut questions, "v\n").as_deref(),
            Some(r#"{"How many?":"7","Which?":"Blue","Why?":"A"}"#)
        );
    }
}
