//! Announces a message while it is typed, so that the daemon connects to the provider
//! ahead of it (MODEL-8).
//!
//! Invariant: each message is announced at most once, and typing never waits for it.

use super::Live;
use crabtalk_proto::ExpectMessageMsg;

/// Whether a text may be announced. Commands are not, nor `@name`, whose guest is not known
/// yet.
fn is_message(typed: &str) -> bool {
    let text = typed.trim_start();
    !text.is_empty() && !text.starts_with(['/', '!', '@'])
}

impl Live<'_> {
    /// Announces the text in the composer if it is a message.
    pub(super) fn announce(&mut self) {
        // An active run already has a connection.
        if self.runs.is_running() || self.is_gone() {
            return;
        }
        if is_message(self.composer.text()) && !std::mem::replace(&mut self.is_announced, true) {
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
    use super::is_message;

    #[test]
    fn messages_are_announced_and_commands_never() {
        for typed in ["", "  ", "/model", "!ls", " @crab"] {
            assert!(!is_message(typed), "{typed}");
        }
        assert!(is_message("h"));
    }
}
