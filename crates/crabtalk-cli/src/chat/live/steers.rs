//! Steering messages to the active run.
//!
//! Invariant: such a message leaves its row for its place in the conversation, or for
//! the composer where no log has it; it is never shown in both.

use std::collections::VecDeque;

/// State of a steering message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The daemon has not answered yet.
    Sent,
    /// It is in the log and waits for a step.
    Kept,
    /// The connection broke before the answer came.
    Unsure,
}

/// Those that no run has read yet, in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Steers(VecDeque<(String, Known)>);

impl Steers {
    pub(super) fn push(&mut self, text: String) {
        self.0.push_back((text, Known::Sent));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Known)> {
        self.0.iter().map(|(text, known)| (text.as_str(), *known))
    }

    /// The daemon answered of one, or its connection broke; whether it waits still.
    pub(super) fn answered(&mut self, text: &str, known: Known) -> bool {
        let mut all = self.0.iter_mut();
        let sent = all.find(|(waits, state)| waits == text && *state == Known::Sent);
        let Some((_, state)) = sent else { return false };
        *state = known;
        true
    }

    /// One is shown in its place, or is something else by now.
    pub(super) fn remove(&mut self, text: &str) {
        if let Some(at) = self.0.iter().position(|(waits, _)| waits == text) {
            self.0.remove(at);
        }
    }

    /// The run is over and said which of them it read: those that may have been lost.
    pub(super) fn over(&mut self) -> Vec<String> {
        let all = self.0.drain(..);
        let unsure = all.filter(|(_, known)| *known == Known::Unsure);
        unsure.map(|(text, _)| text).collect()
    }

    /// The log was read, and has none that is left here.
    pub(super) fn distrust(&mut self) {
        let kept = self.0.iter_mut().filter(|(_, known)| *known == Known::Kept);
        kept.for_each(|(_, known)| *known = Known::Unsure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_log_has_is_given_back_and_nothing_else() {
        let mut steers = Steers::default();
        for text in ["read", "kept", "on its way", "cut"] {
            steers.push(text.to_owned());
        }
        assert!(steers.answered("read", Known::Kept));
        assert!(steers.answered("kept", Known::Kept));
        assert!(steers.answered("cut", Known::Unsure));
        assert!(!steers.answered("cut", Known::Kept), "it was answered");
        steers.remove("read");
        assert_eq!(steers.over(), ["cut"]);
        assert_eq!(steers.iter().count(), 0);
        for text in ["kept", "on its way"] {
            steers.push(text.to_owned());
        }
        steers.answered("kept", Known::Kept);
        steers.distrust();
        assert_eq!(steers.over(), ["kept"], "the log does not have it");
    }
}
