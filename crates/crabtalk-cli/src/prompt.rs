//! Prompts for questions and approvals (RUN-7, GATE-4).
//!
//! Invariant: an approval shows the whole call, in pages if necessary, and needs a
//! clear yes after the last page.

mod answer;
mod shown;

pub(crate) use answer::{Answer, keys, offered};
use crabtalk_proto::{AskQuestion, AskUserEvent};
pub(crate) use shown::{Size, lasting, pages, question_text, wanted};
use std::collections::VecDeque;

/// The answer of a client without a terminal.
pub(crate) const NOBODY: &str = "nobody is at the terminal";

pub(crate) fn is_approval(ask: &AskUserEvent) -> bool {
    ask.kind == "approval"
}

/// Result of an input line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Show this and wait for another line.
    Show(String),
    /// Show the next page or question, and wait for an answer to it.
    Next,
    /// Send this as the answer.
    Answer(String),
}

/// An open ask.
#[derive(Debug)]
pub(crate) struct Prompt {
    ask: AskUserEvent,
    /// Answers to the first questions, in order.
    answers: Vec<String>,
    /// Pages not shown yet.
    unseen: VecDeque<String>,
}

impl Prompt {
    pub(crate) fn new(ask: AskUserEvent) -> Self {
        Self {
            ask,
            answers: Vec::new(),
            unseen: VecDeque::new(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.ask.ask_id
    }

    /// Whether the answer may allow a call.
    pub(crate) fn allows(&self) -> bool {
        is_approval(&self.ask)
    }

    /// Starts the prompt, also again after a refused answer.
    pub(crate) fn begin(&mut self, agent: &str, size: Option<Size>) {
        self.answers.clear();
        if is_approval(&self.ask) {
            self.unseen = pages(&wanted(&self.ask, agent), size).into();
        }
    }

    /// The current page or question.
    pub(crate) fn text(&mut self, agent: &str) -> String {
        if is_approval(&self.ask) {
            return self.unseen.pop_front().unwrap_or_default();
        }
        match self.ask.questions.get(self.answers.len()) {
            Some(question) => question_text(question, agent),
            None => "The agent waits for your answer.\n".to_owned(),
        }
    }

    /// The prompt of the input line.
    pub(crate) fn line(&self) -> String {
        if !is_approval(&self.ask) {
            return "> ".to_owned();
        }
        match self.unseen.len() {
            0 => {
                let offered = offered(&self.ask).into_iter().map(Answer::short);
                format!("Allow this? {} > ", offered.collect::<Vec<_>>().join(", "))
            }
            pages => format!("Enter shows more ({pages} pages left), n denies > "),
        }
    }

    /// Handles a line; `None` is the end of input.
    pub(crate) fn take(&mut self, line: Option<&str>) -> Step {
        if is_approval(&self.ask) {
            return self.judge(line);
        }
        let Some(line) = line else {
            return Step::Answer(NOBODY.to_owned());
        };
        if line.trim().is_empty() {
            return Step::Show("> ".to_owned());
        }
        self.answers.push(line.trim().to_owned());
        if self.answers.len() < self.ask.questions.len() {
            return Step::Next;
        }
        Step::Answer(self.answer())
    }

    /// Parses an answer to an approval; before the last page only a denial counts.
    fn judge(&self, line: Option<&str>) -> Step {
        let Some(line) = line else {
            return Step::Answer("Deny".to_owned());
        };
        let offered = offered(&self.ask);
        let answer = approval(line).filter(|(answer, _)| offered.contains(answer));
        let seen = self.unseen.is_empty();
        match answer {
            Some((Answer::Deny, reason)) if !reason.is_empty() => {
                Step::Answer(format!("Deny: {reason}"))
            }
            Some((answer, _)) if seen || answer == Answer::Deny => {
                Step::Answer(answer.label().to_owned())
            }
            None if seen => {
                Step::Show(format!("Please answer {}, or n: reason > ", keys(&offered)))
            }
            None if line.trim().is_empty() => Step::Next,
            Some(_) | None => Step::Show("More follows. ".to_owned() + &self.line()),
        }
    }

    /// The reply: one answer as typed, several as a JSON object from question to answer.
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

/// An answer to one of several questions; numbers become labels.
pub(crate) fn chosen(question: &AskQuestion, answer: &str) -> serde_json::Value {
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

/// The answer and the reason of a denial; `None` if unclear.
fn approval(line: &str) -> Option<(Answer, &str)> {
    let (word, reason) = line.split_once(':').unwrap_or((line, ""));
    let (word, reason) = (word.trim(), reason.trim());
    let answer = Answer::of(word)?;
    (reason.is_empty() || answer == Answer::Deny).then_some((answer, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::{ApprovalInfo, AskOption};

    fn approval_ask() -> AskUserEvent {
        AskUserEvent {
            kind: "approval".into(),
            tool: "bash".into(),
            detail: "cargo test\nrm -rf x".into(),
            always: Some(ApprovalInfo {
                agent: "crab".into(),
                sender: "user".into(),
                tool: "bash".into(),
                exact: "cargo test\nrm -rf x".into(),
                cwd: "/w".into(),
                ..ApprovalInfo::default()
            }),
            cwd: "/w".into(),
            reason: "allowed by no rule".into(),
            questions: vec![question(
                "Run it?",
                &["Allow once", "Allow always", "Deny"],
                false,
            )],
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
                || Step::Show("Please answer y, a or n, or n: reason > ".into()),
                |answer| Step::Answer(answer.into()),
            );
            assert_eq!(
                Prompt::new(approval_ask()).take(Some(typed)),
                want,
                "{typed:?}"
            );
        }
        let closed = Prompt::new(approval_ask()).take(None);
        assert_eq!(closed, Step::Answer("Deny".into()));
    }

    /// All output before the input line.
    fn shown(ask: AskUserEvent, size: Option<Size>) -> String {
        let mut prompt = Prompt::new(ask);
        prompt.begin("crab", size);
        let mut text = prompt.text("crab") + &prompt.line();
        while prompt.take(Some("")) == Step::Next {
            text += &("\n".to_owned() + &prompt.text("crab") + &prompt.line());
        }
        text
    }

    #[test]
    fn approval_shows_the_whole_call() {
        let head = "crab wants to use bash (2 lines):\n    cargo test\n    rm -rf x\n  in /w\n";
        let why = "  reason: allowed by no rule\n";
        let rule = "  Always: allow this exact command in this folder\n";
        let line = "Allow this? [y]es once, [a]lways, [n]o (or n: reason) > ";
        assert_eq!(
            shown(approval_ask(), None),
            [head, why, rule, line].concat()
        );
        let edit = AskUserEvent {
            tool: "edit".into(),
            detail: "/w/f".into(),
            preview: "-a\u{202e}\n+b\n".into(),
            preview_kind: "diff".into(),
            always: None,
            questions: Vec::new(),
            ..approval_ask()
        };
        assert_eq!(
            shown(edit, None),
            "crab wants to use edit:\n    /w/f\n  in /w\n  the change (2 lines):\n    \
             -a<U+202E>\n    +b\n  reason: allowed by no rule\n\
             Allow this? [y]es once, [n]o (or n: reason) > "
        );
    }

    #[test]
    fn allowing_needs_the_last_page() {
        let commands: String = (1..=30).map(|n| format!("echo {n}\n")).collect();
        let long = AskUserEvent {
            detail: commands + "rm -rf precious",
            ..approval_ask()
        };
        let size = Some(Size {
            columns: 80,
            rows: 13,
        });
        let mut prompt = Prompt::new(long.clone());
        prompt.begin("crab", size);
        assert!(!prompt.text("crab").contains("precious"));
        assert_eq!(
            prompt.line(),
            "Enter shows more (3 pages left), n denies > "
        );
        for early in ["y", "a", "1", "perhaps"] {
            assert!(matches!(prompt.take(Some(early)), Step::Show(_)), "{early}");
        }
        assert_eq!(
            prompt.take(Some("n: too long")),
            Step::Answer("Deny: too long".into())
        );
        let all = shown(long, size);
        assert!(all.contains("    echo 30\n    rm -rf precious\n"), "{all}");
    }

    #[test]
    fn only_listed_answers_are_taken() {
        let labels = ["Allow once", "Allow for this conversation", "Deny"];
        let mut prompt = Prompt::new(AskUserEvent {
            questions: vec![question("Run it?", &labels, false)],
            outside: true,
            ..approval_ask()
        });
        prompt.begin("crab", None);
        assert!(
            prompt
                .text("crab")
                .starts_with("OUTSIDE THE SANDBOX\ncrab wants")
        );
        assert_eq!(
            prompt.line(),
            "Allow this? [y]es once, this [c]onversation, [n]o (or n: reason) > "
        );
        for typed in ["a", "2", "p", "Allow prefix"] {
            assert!(matches!(prompt.take(Some(typed)), Step::Show(_)), "{typed}");
        }
        for typed in ["c", "5", "allow for this conversation"] {
            let answer = Step::Answer("Allow for this conversation".into());
            assert_eq!(prompt.take(Some(typed)), answer, "{typed}");
        }
    }

    #[test]
    fn one_question_is_answered_as_typed() {
        let ask = AskUserEvent {
            questions: vec![question("Which?", &["Red", "Blue"], false)],
            ..AskUserEvent::default()
        };
        let mut prompt = Prompt::new(ask);
        assert_eq!(
            prompt.text("crab") + &prompt.line(),
            "crab asks: Which?\n  1. Red\n  2. Blue\n> "
        );
        assert_eq!(prompt.take(Some(" ")), Step::Show("> ".into()));
        assert_eq!(prompt.take(Some("2")), Step::Answer("2".into()));
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
        assert_eq!(prompt.take(Some("2")), Step::Next);
        assert_eq!(prompt.take(Some("3")), Step::Next);
        assert_eq!(
            prompt.take(Some("1, c,other")),
            Step::Answer(
                r#"{"How many?":"3","What for?":["A","c","other"],"Which?":"Blue"}"#.into()
            )
        );
    }
}
