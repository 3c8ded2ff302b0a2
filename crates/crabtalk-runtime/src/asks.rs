//! Questions and approvals that wait for an answer (RUN-7, GATE-4).
//!
//! Invariants: an ask is pending exactly as long as the future that waits for
//! it lives; an answer that does not fit leaves it pending; a reply without an
//! id never reaches an ask that was not shown in that conversation's stream.

mod reply;

use crate::Error;
use crabtalk_domain::{Ask, ConversationKey};
use reply::parse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// What somebody answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To questions: a JSON object question -> answer or answers.
    Questions(serde_json::Value),
    /// This call may run.
    AllowOnce,
    /// This call may run, now and whenever it comes again.
    AllowAlways,
    /// This call must not run; the reason reaches the model.
    Deny(String),
}

/// A pending ask as lists show it.
#[derive(Debug, Clone)]
pub struct PendingAsk {
    /// The conversation in whose stream it is shown, or whose run it blocks.
    pub key: ConversationKey,
    /// What is asked.
    pub ask: Arc<Ask>,
    /// RFC 3339 instant.
    pub asked_at: String,
    /// Whether it is shown to the owner alone and in no stream.
    pub inbox: bool,
}

struct Waiting {
    pending: PendingAsk,
    answer: oneshot::Sender<Answered>,
}

/// An answer, and the principal who gave it.
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) by: String,
}

/// Every pending ask of the daemon, oldest first.
pub(crate) struct AskDesk {
    waiting: Mutex<Vec<Waiting>>,
    /// Differs between daemons, so that an answer meant for an ask of an
    /// earlier one cannot hit a new one.
    era: String,
    next: AtomicU64,
}

impl AskDesk {
    pub(crate) fn new(era_ms: i64) -> Self {
        Self {
            waiting: Mutex::default(),
            era: format!("{era_ms:x}"),
            next: AtomicU64::new(1),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting
            .lock()
            .expect("no code panics while it holds the asks")
    }

    /// An id for a new ask.
    pub(crate) fn new_id(&self) -> String {
        format!("{}-{}", self.era, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes an ask pending until the returned wait is dropped.
    pub(crate) fn open(self: &Arc<Self>, pending: PendingAsk) -> AskWait {
        let (answer, receiver) = oneshot::channel();
        let id = pending.ask.id.clone();
        self.waiting().push(Waiting { pending, answer });
        AskWait {
            desk: Arc::clone(self),
            id,
            receiver,
        }
    }

    /// Pending asks, oldest first; `None` means any.
    pub(crate) fn list(&self, agent: Option<&str>, sender: Option<&str>) -> Vec<PendingAsk> {
        let fits = |want: Option<&str>, is: &str| want.is_none_or(|want| want == is);
        let of = |w: &Waiting| {
            let key = &w.pending.key;
            (fits(agent, key.agent.as_str()) && fits(sender, key.sender.as_str()))
                .then(|| w.pending.clone())
        };
        self.waiting().iter().filter_map(of).collect()
    }

    /// Answers an ask: the named one, else the oldest shown in the
    /// conversation's stream.
    pub(crate) fn reply(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
        by: &str,
    ) -> Result<(), Error> {
        let mut waiting = self.waiting();
        let found = waiting.iter().position(|w| match ask_id {
            Some(id) => w.pending.ask.id == id,
            None => w.pending.key == *key && !w.pending.inbox,
        });
        let Some(at) = found else {
            return Err(Error::NoAsk(match ask_id {
                Some(id) => format!(" under the id {id:?}; it was answered or withdrawn"),
                None => format!(" in {key}"),
            }));
        };
        let answer = parse(&waiting[at].pending.ask, content).map_err(Error::BadReply)?;
        let asked = waiting.remove(at);
        drop(waiting);
        // The run may have gone this instant; then the answer is moot.
        let _ = asked.answer.send(Answered {
            answer,
            by: by.to_owned(),
        });
        Ok(())
    }
}

/// Waits for the answer to an ask; dropping it withdraws the ask.
pub(crate) struct AskWait {
    desk: Arc<AskDesk>,
    id: String,
    receiver: oneshot::Receiver<Answered>,
}

impl AskWait {
    /// The answer, or `None` when the runtime goes down.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        self.answered().await.map(|answered| answered.answer)
    }

    /// The answer and who gave it.
    pub(crate) async fn answered(&mut self) -> Option<Answered> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for AskWait {
    fn drop(&mut self) {
        self.desk.waiting().retain(|w| w.pending.ask.id != self.id);
    }
}
