//! The answers to an approval.
//!
//! Invariant: an answer is accepted only if the ask lists it; a denial always is.

use crabtalk_proto::AskUserEvent;

/// An answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Once,
    Always,
    Prefix,
    Conversation,
    Deny,
}

impl Answer {
    const ALL: [Self; 5] = [
        Self::Once,
        Self::Always,
        Self::Prefix,
        Self::Conversation,
        Self::Deny,
    ];

    /// The option's label, which is also the answer on the wire.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Once => "Allow once",
            Self::Always => "Allow always",
            Self::Prefix => "Allow prefix",
            Self::Conversation => "Allow for this conversation",
            Self::Deny => "Deny",
        }
    }

    /// The keys for it: a letter and a digit.
    pub(crate) fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Once => ["y", "1"],
            Self::Always => ["a", "2"],
            Self::Prefix => ["p", "4"],
            Self::Conversation => ["c", "5"],
            Self::Deny => ["n", "3"],
        }
    }

    /// Other words that a person may type for it.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Once => &["yes", "allow", "once"],
            Self::Always => &["always"],
            Self::Prefix => &["prefix"],
            Self::Conversation => &["conversation"],
            Self::Deny => &["no"],
        }
    }

    /// Parses a word, ignoring case.
    pub(super) fn of(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::ALL.into_iter().find(|answer| {
            answer.keys().contains(&word.as_str())
                || answer.words().contains(&word.as_str())
                || answer.label().eq_ignore_ascii_case(&word)
        })
    }

    /// Its short name in the input line.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Once => "[y]es once",
            Self::Always => "[a]lways",
            Self::Prefix => "[p]refix",
            Self::Conversation => "this [c]onversation",
            Self::Deny => "[n]o (or n: reason)",
        }
    }
}

/// The answers that an ask lists. An ask without a list can be allowed once.
pub(crate) fn offered(ask: &AskUserEvent) -> Vec<Answer> {
    let mut options = ask.questions.iter().flat_map(|question| &question.options);
    let unlisted = options.next().is_none();
    let listed = |answer: &Answer| {
        let mut options = ask.questions.iter().flat_map(|question| &question.options);
        options.any(|option| option.label == answer.label())
    };
    let all = Answer::ALL.into_iter();
    all.filter(|answer| match answer {
        Answer::Deny => true,
        Answer::Once => unlisted || listed(answer),
        Answer::Always | Answer::Prefix | Answer::Conversation => listed(answer),
    })
    .collect()
}

/// Lists the keys of answers, as in `y, a or n`.
pub(crate) fn keys(offered: &[Answer]) -> String {
    let keys: Vec<&str> = offered.iter().map(|answer| answer.keys()[0]).collect();
    match keys.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::{AskOption, AskQuestion};

    #[test]
    fn only_listed_answers_and_denials_are_offered() {
        for (labels, want) in [
            (&[][..], "y or n"),
            (&["Allow once", "Deny"], "y or n"),
            (&["Deny"], "n"),
            (
                &["Allow once", "Allow for this conversation", "Deny"],
                "y, c or n",
            ),
            (
                &["Allow once", "Allow always", "Deny", "Allow prefix", "New"],
                "y, a, p or n",
            ),
        ] {
            let options = labels.iter().map(|label| AskOption {
                label: (*label).into(),
                ..AskOption::default()
            });
            let ask = AskUserEvent {
                questions: vec![AskQuestion {
                    options: options.collect(),
                    ..AskQuestion::default()
                }],
                ..AskUserEvent::default()
            };
            assert_eq!(keys(&offered(&ask)), want, "{labels:?}");
        }
    }

    #[test]
    fn answers_are_chosen_by_key_word_or_label() {
        for answer in Answer::ALL {
            let words = answer.keys().into_iter().chain([answer.label()]);
            for word in words.chain(answer.words().iter().copied()) {
                assert_eq!(Answer::of(word), Some(answer), "{word}");
            }
        }
        assert_eq!(Answer::of("yeah"), None);
    }
}
