//! References of a message that cannot be resolved: marked during typing, and reported
//! before they are sent as text.

use super::Live;
use crate::chat::references::{is_known, references};
use std::ops::Range;

/// References without a file or agent.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// The text that contains them.
    text: String,
    ranges: Vec<Range<usize>>,
    /// The reported text, which the next Enter sends.
    reported: String,
}

impl Live<'_> {
    /// Marks the references in the composer, except the one that is being completed.
    pub(super) fn mark_unknown(&mut self) {
        let text = self.composer.text();
        if self.unknown.text != text {
            self.unknown.ranges = match self.is_message(text) {
                true => self.unknown_in(text).into_iter().map(|it| it.0).collect(),
                false => Vec::new(),
            };
            self.unknown.text = text.to_owned();
        }
        let cursor = self.composer.before_cursor().len();
        let mut marks = self.unknown.ranges.clone();
        marks.retain(|range| self.popup.is_none() || range.end != cursor);
        self.composer.mark(marks);
    }

    /// Resolves the references again, since the known names changed.
    pub(super) fn forget_unknown(&mut self) {
        self.unknown.text.clear();
    }

    /// Reports the unknown references of the text once; returns whether it did.
    pub(super) fn reports_unknown(&mut self, key: &str) -> bool {
        let text = self.composer.text().to_owned();
        if self.unknown.reported == text || !self.is_message(&text) {
            return false;
        }
        let names: Vec<String> = self.unknown_in(&text).into_iter().map(|it| it.1).collect();
        let Some(said) = report(&names, key) else {
            return false;
        };
        self.transcript.problem(&said);
        self.unknown.reported = text;
        self.popup = None;
        true
    }

    fn unknown_in(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let agents = &self.learned.known.agents;
        let found = references(text, |name| is_known(name, agents, &self.cwd));
        let unknown = found.into_iter().filter(|reference| !reference.is_known);
        unknown
            .map(|reference| (reference.range, format!("@{}", reference.name)))
            .collect()
    }

    /// Whether a text is sent to the agent.
    fn is_message(&self, text: &str) -> bool {
        let text = text.trim_start();
        if let Some(rest) = text.strip_prefix('/') {
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            return self.learned.known.is_message(word);
        }
        !text.starts_with('!')
    }
}

/// The report about unknown references, if there are any.
fn report(names: &[String], key: &str) -> Option<String> {
    let (names, verb) = match names {
        [] => return None,
        [name] => (name.clone(), "matches"),
        [names @ .., last] => (format!("{} and {last}", names.join(", ")), "match"),
    };
    Some(format!(
        "{names} {verb} no file or agent; press {key} again to send the message unchanged"
    ))
}

#[cfg(test)]
mod tests {
    use super::report;

    #[test]
    fn report_names_each_reference() {
        for (names, want) in [
            (&[][..], None),
            (&["@a"], Some("@a matches no file or agent;")),
            (&["@a", "@b"], Some("@a and @b match no")),
            (&["@a", "@b", "@c"], Some("@a, @b and @c match no")),
        ] {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let said = report(&names, "Enter");
            match want {
                Some(want) => assert!(said.is_some_and(|said| said.starts_with(want)), "{want}"),
                None => assert_eq!(said, None),
            }
        }
    }
}
