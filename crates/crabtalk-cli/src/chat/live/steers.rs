//! Steering messages to the active run.
//!
//! Invariant: a message is in its row, the transcript or the composer, never in two of
//! them.

use std::collections::VecDeque;

/// State of a steering message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Sent, not answered.
    Sent,
    /// The message is logged and waits for the next step.
    Kept,
    /// The connection broke before the answer.
    Unsure,
}

/// Unread messages in order.
#[derive(Debug, Default)]
pub(super) struct Steers(VecDeque<(String, Known)>);

impl Steers {
    pub(super) fn push(&mut self, text: String) {
        self.0.push_back((text, Known::Sent));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Known)> {
        self.0.iter().map(|(text, known)| (text.as_str(), *known))
    }

    /// Records an answer or a broken connection; returns whether the message is still
    /// pending.
    pub(super) fn answered(&mut self, text: &str, known: Known) -> bool {
        let mut all = self.0.iter_mut();
        let sent = all.find(|(waits, state)| waits == text && *state == Known::Sent);
        let Some((_, state)) = sent else { return false };
        *state = known;
        true
    }

    /// Removes a message.
    pub(super) fn remove(&mut self, text: &str) {
        if let Some(at) = self.0.iter().position(|(waits, _)| waits == text) {
            self.0.remove(at);
        }
    }

    /// Returns messages that may be lost, at the end of a run.
    pub(super) fn over(&mut self) -> Vec<String> {
        let all = self.0.drain(..);
        let unsure = all.filter(|(_, known)| *known == Known::Unsure);
        unsure.map(|(text, _)| text).collect()
    }

    /// Marks all messages as unsure, because the log was read without them.
    pub(super) fn distrust(&mut self) {
        let kept = self.0.iter_mut().filter(|(_, known)| *known == Known::Kept);
        kept.for_each(|(_, known)| *known = Known::Unsure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lost_messages_are_returned() {
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
