//! A question or an approval, as people see and answer it (RUN-7, GATE-4).
//!
//! Invariant: an approval shows all that would be done; nothing but a clear
//! yes allows it.

use crabtalk_proto::{AskQuestion, AskUserEvent};

/// What an unattended client answers to a question.
pub(crate) const NOBODY: &str = "nobody is here";

/// Whether an ask is an approval.
pub(crate) fn is_approval(ask: &AskUserEvent) -> bool {
    ask.kind == "approval"
}

/// What comes of a line that a person typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Show this and wait for another line.
    Show(String),
    /// Send this as the answer.
    Answer(String),
}

/// An ask that is being answered.
#[derive(Debug)]
pub(crate) struct Prompt {
    ask: AskUserEvent,
    /// Answers to the first questions, in order.
    answers: Vec<String>,
}

impl Prompt {
    pub(crate) fn new(ask: AskUserEvent) -> Self {
        Self {
            ask,
            answers: Vec::new(),
        }
    }

    /// Names the ask.
    pub(crate) fn id(&self) -> &str {
        &self.ask.ask_id
    }

    /// Begins again, after an answer that was refused.
    pub(crate) fn restart(&mut self) {
        self.answers.clear();
    }

    /// What to show before the next line is typed.
    pub(crate) fn text(&self, agent: &str) -> String {
        if is_approval(&self.ask) {
            return format!(
                "\n{}\nAllow? [y]es once, [a]lways, [n]o (or n: reason) > ",
                wanted(&self.ask, agent)
            );
        }
        let Some(question) = self.ask.questions.get(self.answers.len()) else {
            return "\nThe agent waits for a word from you.\n> ".to_owned();
        };
        format!("\n{}> ", question_text(question, agent))
    }

    /// Takes a line; `None` is the end of input.
    pub(crate) fn take(&mut self, line: Option<&str>, agent: &str) -> Step {
        if is_approval(&self.ask) {
            return match line.map_or(Some("Deny".to_owned()), approval) {
                Some(answer) => Step::Answer(answer),
                None => Step::Show("Please answer y, a, n, or n: and a reason > ".to_owned()),
            };
        }
        let Some(line) = line else {
            return Step::Answer(NOBODY.to_owned());
        };
        if line.trim().is_empty() {
            return Step::Show("> ".to_owned());
        }
        self.answers.push(line.trim().to_owned());
        if self.answers.len() < self.ask.questions.len() {
            return Step::Show(self.text(agent));
        }
        Step::Answer(self.answer())
    }

    /// One answer as typed; several as a JSON object question -> answer.
    fn answer(&self) -> String {
        if let ([answer], 0..=1) = (&self.answers[..], self.ask.questions.len()) {
            return answer.clone();
        }
        let questions = self.ask.questions.iter().zip(&self.answers);
        let answers = questions.map(|(question, answer)| {
            let value = chosen(question, answer);
            (question.question.clone(), value)
        });
        serde_json::Value::Object(answers.collect()).to_string()
    }
}

/// An answer to one of several questions: numbers become labels here, so that
/// the object reads the same whoever reads it.
fn chosen(question: &AskQuestion, answer: &str) -> serde_json::Value {
    let label = |word: &str| {
        let word = word.trim();
        let known = question
            .options
            .iter()
            .any(|o| o.label.eq_ignore_ascii_case(word));
        let index = word
            .parse::<usize>()
            .ok()
            .filter(|_| !known)
            .and_then(|n| n.checked_sub(1));
        let option = index.and_then(|i| question.options.get(i));
        option.map_or_else(|| word.to_owned(), |option| option.label.clone())
    };
    if question.multi_select {
        return answer.split(',').map(label).collect();
    }
    label(answer).into()
}

/// What would be done, whole.
pub(crate) fn wanted(ask: &AskUserEvent, agent: &str) -> String {
    let mut text = format!("{agent} wants to use {}:", ask.tool);
    let detail = match (ask.detail.as_str(), ask.questions.first()) {
        ("", Some(question)) => question.question.as_str(),
        (detail, _) => detail,
    };
    for line in detail.lines() {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

fn question_text(question: &AskQuestion, agent: &str) -> String {
    let mut text = match question.header.as_str() {
        "" => format!("{agent} asks: {}\n", question.question),
        header => format!("{agent} asks ({header}): {}\n", question.question),
    };
    for (i, option) in question.options.iter().enumerate() {
        let description = match option.description.as_str() {
            "" => String::new(),
            description => format!(" - {description}"),
        };
        text.push_str(&format!("  {}. {}{description}\n", i + 1, option.label));
    }
    if question.multi_select {
        text.push_str("  (several: separate them by commas)\n");
    }
    text
}

/// The protocol's answer for what a person typed; `None` if it is neither yes
/// nor no.
fn approval(line: &str) -> Option<String> {
    let line = line.trim();
    let (word, reason) = match line.split_once(':') {
        Some((word, reason)) => (word.trim(), Some(reason.trim()).filter(|r| !r.is_empty())),
        None => (line, None),
    };
    match (word.to_ascii_lowercase().as_str(), reason) {
        ("y" | "yes" | "1" | "allow" | "allow once" | "once", None) => {
            Some("Allow once".to_owned())
        }
        ("a" | "always" | "2" | "allow always", None) => Some("Allow always".to_owned()),
        ("n" | "no" | "3" | "deny", None) => Some("Deny".to_owned()),
        ("n" | "no" | "3" | "deny", Some(reason)) => Some(format!("Deny: {reason}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::AskOption;

    fn approval_ask() -> AskUserEvent {
        AskUserEvent {
            kind: "approval".into(),
            tool: "bash".into(),
            detail: "cargo test\nrm -rf x".into(),
            ..AskUserEvent::default()
        }
    }

    fn question(text: &str, labels: &[&str], multi_select: bool) -> AskQuestion {
        let options = labels.iter().map(|label| AskOption {
            label: (*label).into(),
            description: String::new(),
        });
        AskQuestion {
            question: text.into(),
            options: options.collect(),
            multi_select,
            ..AskQuestion::default()
        }
    }

    #[test]
    fn only_a_clear_yes_allows() {
        for (typed, want) in [
            ("y", Some("Allow once")),
            (" YES ", Some("Allow once")),
            ("1", Some("Allow once")),
            ("a", Some("Allow always")),
            ("n", Some("Deny")),
            ("no: too risky: really", Some("Deny: too risky: really")),
            ("deny:", Some("Deny")),
            ("", None),
            ("yeah", None),
            ("y: but", None),
        ] {
            let want = want.map_or_else(
                || Step::Show("Please answer y, a, n, or n: and a reason > ".into()),
                |answer| Step::Answer(answer.into()),
            );
            assert_eq!(
                Prompt::new(approval_ask()).take(Some(typed), "crab"),
                want,
                "{typed:?}"
            );
        }
        let closed = Prompt::new(approval_ask()).take(None, "crab");
        assert_eq!(closed, Step::Answer("Deny".into()));
    }

    #[test]
    fn an_approval_shows_all_that_would_be_done() {
        assert_eq!(
            Prompt::new(approval_ask()).text("crab"),
            "\ncrab wants to use bash:\n    cargo test\n    rm -rf x\nAllow? [y]es once, [a]lways, [n]o (or n: reason) > "
        );
    }

    #[test]
    fn one_question_is_answered_as_typed() {
        let ask = AskUserEvent {
            questions: vec![question("Which?", &["Red", "Blue"], false)],
            ..AskUserEvent::default()
        };
        let mut prompt = Prompt::new(ask);
        assert_eq!(
            prompt.text("crab"),
            "\ncrab asks: Which?\n  1. Red\n  2. Blue\n> "
        );
        assert_eq!(prompt.take(Some(" "), "crab"), Step::Show("> ".into()));
        assert_eq!(prompt.take(Some("2"), "crab"), Step::Answer("2".into()));
    }

    #[test]
    fn several_questions_make_an_object() {
        let ask = AskUserEvent {
            questions: vec![
                question("Which?", &["Red", "Blue"], false),
                question("How many?", &["Some", "3"], false),
                question("What for?", &["A", "B", "C"], true),
            ],
            ..AskUserEvent::default()
        };
        let mut prompt = Prompt::new(ask);
        assert!(matches!(prompt.take(Some("2"), "crab"), Step::Show(_)));
        assert!(matches!(prompt.take(Some("3"), "crab"), Step::Show(_)));
        assert_eq!(
            prompt.take(Some("1, c,other"), "crab"),
            Step::Answer(
                r#"{"How many?":"3","What for?":["A","c","other"],"Which?":"Blue"}"#.into()
            )
        );
    }
}
