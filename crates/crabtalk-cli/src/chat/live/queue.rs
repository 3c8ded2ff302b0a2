//! Taking queued messages back into the composer.
//!
//! Invariant: a message is in the queue, the transcript or the composer, never in two of
//! them; the daemon decides whether its run has begun.

use super::Live;
use super::calls::Pair;
use crabtalk_client::Error;
use crabtalk_proto::WithdrawMsg;

impl Live<'_> {
    /// Handles Up in an empty composer: requests the newest queued message; returns whether there
    /// is one.
    pub(super) fn ask_back(&mut self) -> bool {
        let Some(id) = self.runs.ask_back() else {
            return false;
        };
        let Pair { agent, sender } = self.pair.clone();
        let request = WithdrawMsg {
            agent,
            sender,
            request_id: id.clone(),
        };
        self.request(request, move |live, answer| live.withdrawn(&id, answer));
        true
    }

    /// Handles the answer of the daemon.
    fn withdrawn(&mut self, id: &str, answer: Result<(), Error>) {
        match answer {
            Ok(()) => {
                self.take_back(id);
                self.catch_up();
            }
            Err(error) => {
                // Without an answer, the end of the message's stream decides.
                if error.code().is_some() {
                    self.runs.stays(id);
                }
                self.transcript.problem(&error.to_string());
            }
        }
    }

    /// Puts a withdrawn message into the composer; returns whether it was queued here.
    pub(super) fn take_back(&mut self, id: &str) -> bool {
        let Some((said, mut outputs)) = self.runs.withdraw(id) else {
            return false;
        };
        outputs.append(&mut self.shown);
        self.shown = outputs;
        self.put_back(&said);
        true
    }
}
