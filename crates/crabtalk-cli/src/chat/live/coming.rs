//! Announces a message while it is typed, so that the daemon connects to the provider
//! ahead of it (MODEL-8).
//!
//! Invariant: each message is announced at most once, and typing never waits for it.

use super::Live;
use crabtalk_proto::ExpectMessageMsg;

/// Whether the text in the composer is announced.
#[derive(Default)]
pub(super) struct Coming {
    is_announced: bool,
}

impl Coming {
    /// Whether to announce this text now. Commands are not announced, nor `@name`, whose guest
    /// is not known yet.
    fn announces(&mut self, typed: &str) -> bool {
        let text = typed.trim_start();
        let is_message = !text.is_empty() && !text.starts_with(['/', '!', '@']);
        is_message && !std::mem::replace(&mut self.is_announced, true)
    }

    /// Records that the message was sent; the next text is a new one.
    pub(super) fn sent(&mut self) {
        self.is_announced = false;
    }
}

impl Live<'_> {
    /// Announces the text in the composer if it is a message.
    pub(super) fn announce(&mut self) {
        // An active run already has a connection.
        if self.runs.is_running() || self.is_gone() {
            return;
        }
        if self.coming.announces(self.composer.text()) {
            let message = ExpectMessageMsg {
                agent: self.pair.agent.clone(),
                sender: self.pair.sender.clone(),
                model: self.model.wire().unwrap_or_default(),
            };
            // A refusal has no effect.
            self.request(message, |_, _| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_announced_once_and_commands_never() {
        let mut coming = Coming::default();
        for text in ["", " \n", "/model x", "/review", "!ls", " !ls", "@ada why"] {
            assert!(!coming.announces(text), "{text:?}");
        }
        assert!(coming.announces(" h"));
        assert!(!coming.announces("he"));
        coming.sent();
        assert!(coming.announces("a/b"), "the next message");
    }
}
