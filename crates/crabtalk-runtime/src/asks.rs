//! Pending questions and approvals (RUN-7, GATE-4).
//!
//! Invariants: an ask is pending as long as the future that waits for it lives; an
//! invalid answer leaves it pending; a reply without an id reaches only asks that a
//! reader of the conversation's stream has shown; the first of two answers counts;
//! each viewer of an ask receives its end once.

mod reply;

use crate::Error;
use crate::events::RunLog;
use crabtalk_domain::{AgentEvent, Ask, AskOutcome, AskRule, ConversationKey, Principal};
use reply::parse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// An answer to an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Answers to questions: a JSON object from each question to its answers.
    Questions(serde_json::Value),
    /// Allows this call.
    AllowOnce,
    /// Allows this call and stores a rule for it.
    AllowAlways,
    /// Allows this call and stores a rule for commands with the same prefix.
    AllowPrefix,
    /// Allows this call, and the requested hosts for the whole conversation.
    AllowConversation,
    /// Denies this call; the model gets the reason.
    Deny(String),
}

/// The option that grants hosts to a conversation.
pub(crate) const FOR_CONVERSATION: &str = "Allow for this conversation";

impl Answer {
    /// The answer as a person would type it (RUN-7).
    fn words(&self) -> String {
        match self {
            Self::Questions(answers) => answers.to_string(),
            Self::AllowOnce => "Allow once".into(),
            Self::AllowAlways => "Allow always".into(),
            Self::AllowPrefix => "Allow prefix".into(),
            Self::AllowConversation => FOR_CONVERSATION.into(),
            Self::Deny(reason) if reason.is_empty() => "Deny".into(),
            Self::Deny(reason) => format!("Deny: {reason}"),
        }
    }

    /// The kind of answer, for the log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Questions(_) => "answered",
            Self::AllowOnce => "allow once",
            Self::AllowAlways => "allow always",
            Self::AllowPrefix => "allow prefix",
            Self::AllowConversation => "allow for this conversation",
            Self::Deny(_) => "deny",
        }
    }
}

/// A pending ask as lists show it.
#[derive(Debug, Clone)]
pub struct PendingAsk {
    /// The conversation in whose stream it is shown, or whose run it blocks.
    pub key: ConversationKey,
    /// The ask.
    pub ask: Arc<Ask>,
    /// RFC 3339 instant.
    pub asked_at: String,
    /// Whether it appears only in the owner's inbox.
    pub inbox: bool,
}

struct Waiting {
    pending: PendingAsk,
    /// The stream that shows the ask; `None` for the inbox.
    shown_in: Option<Arc<RunLog>>,
    /// `None` while an answer is being stored.
    answer: Option<oneshot::Sender<Answered>>,
}

impl Waiting {
    /// Whether a reader of the conversation has shown it.
    fn is_shown(&self) -> bool {
        let shown_in = self.shown_in.as_ref();
        shown_in.is_some_and(|log| log.has_shown(&self.pending.ask.id))
    }
}

/// An answer and the principal who gave it.
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) by: Principal,
}

impl Answered {
    fn outcome(&self) -> AskOutcome {
        AskOutcome::Answered {
            by: self.by.clone(),
            answer: self.answer.words(),
        }
    }
}

/// Sends an ask and its end to its viewers.
pub(crate) type Tell = Box<dyn Fn(AgentEvent) + Send + Sync>;

/// Every pending ask of the daemon, oldest first.
pub(crate) struct AskDesk {
    waiting: Mutex<Vec<Waiting>>,
    /// Differs between daemons, so that an id from an earlier daemon matches no ask.
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

    /// Makes an ask pending until the returned wait is dropped. Without `shown_in` an
    /// answer must name its id.
    pub(crate) fn open(
        self: &Arc<Self>,
        pending: PendingAsk,
        shown_in: Option<Arc<RunLog>>,
    ) -> AskWait {
        let (answer, receiver) = oneshot::channel();
        let ask = Arc::clone(&pending.ask);
        self.waiting().push(Waiting {
            pending,
            shown_in,
            answer: Some(answer),
        });
        AskWait {
            desk: Arc::clone(self),
            ask,
            receiver,
            tell: None,
        }
    }

    /// Pending asks, oldest first; `None` matches any.
    pub(crate) fn list(&self, agent: Option<&str>, sender: Option<&str>) -> Vec<PendingAsk> {
        let fits = |want: Option<&str>, is: &str| want.is_none_or(|want| want == is);
        let of = |w: &Waiting| {
            let key = &w.pending.key;
            (fits(agent, key.agent.as_str()) && fits(sender, key.sender.as_str()))
                .then(|| w.pending.clone())
        };
        self.waiting().iter().filter_map(of).collect()
    }

    /// Claims the ask with this id, or else the oldest one shown in the conversation's
    /// stream. Other answers cannot claim it until the claim is settled or dropped.
    pub(crate) fn claim(
        self: &Arc<Self>,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
    ) -> Result<Claim, Error> {
        let mut waiting = self.waiting();
        let found = waiting.iter_mut().find(|w| match ask_id {
            Some(id) => w.pending.ask.id == id,
            None => w.pending.key == *key && w.answer.is_some() && w.is_shown(),
        });
        let none = || {
            Error::NoAsk(match ask_id {
                Some(id) => format!(" under the id {id:?}; it was answered or withdrawn"),
                None => format!(" in {key}"),
            })
        };
        let asked = found.ok_or_else(none)?;
        let answer = parse(&asked.pending.ask, content).map_err(Error::BadReply)?;
        Ok(Claim {
            desk: Arc::clone(self),
            ask: Arc::clone(&asked.pending.ask),
            answer,
            sender: Some(asked.answer.take().ok_or_else(none)?),
        })
    }
}

/// Exclusive right to answer an ask. Dropping it leaves the ask pending.
pub(crate) struct Claim {
    desk: Arc<AskDesk>,
    ask: Arc<Ask>,
    answer: Answer,
    sender: Option<oneshot::Sender<Answered>>,
}

impl Claim {
    /// The rule to store before the answer counts, and whether it is a prefix.
    pub(crate) fn rule(&self) -> Option<(&AskRule, bool)> {
        let prefix = self.answer == Answer::AllowPrefix;
        let always = self.answer == Answer::AllowAlways || prefix;
        let rule = self.ask.always.as_ref().filter(|_| always)?;
        Some((rule, prefix))
    }

    pub(crate) fn settle(mut self, by: &Principal) {
        let id = &self.ask.id;
        self.desk.waiting().retain(|w| w.pending.ask.id != *id);
        if let Some(sender) = self.sender.take() {
            // The run may have ended.
            let _ = sender.send(Answered {
                answer: self.answer.clone(),
                by: by.clone(),
            });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(sender) = self.sender.take() else {
            return;
        };
        let mut waiting = self.desk.waiting();
        let asked = waiting.iter_mut().find(|w| w.pending.ask.id == self.ask.id);
        if let Some(asked) = asked {
            asked.answer = Some(sender);
        }
    }
}

/// Waits for the answer to an ask; dropping it withdraws the ask.
pub(crate) struct AskWait {
    desk: Arc<AskDesk>,
    ask: Arc<Ask>,
    receiver: oneshot::Receiver<Answered>,
    /// Sends events to the ask's viewers; `None` once its end was sent.
    tell: Option<Tell>,
}

impl AskWait {
    /// Shows the ask, which must be pending already so that an immediate answer finds it.
    /// The same viewers receive its end.
    pub(crate) fn show(&mut self, tell: impl Fn(AgentEvent) + Send + Sync + 'static) {
        tell(AgentEvent::AskUser(Arc::clone(&self.ask)));
        self.tell = Some(Box::new(tell));
    }

    /// Returns the answer, or `None` when the runtime shuts down.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        self.answered().await.map(|answered| answered.answer)
    }

    /// Returns the answer and its author.
    pub(crate) async fn answered(&mut self) -> Option<Answered> {
        let answered = (&mut self.receiver).await.ok()?;
        self.settle(answered.outcome());
        Some(answered)
    }

    /// Like [`AskWait::answered`] with a time limit, after which the ask has timed out.
    pub(crate) async fn answered_within(mut self, time: Duration) -> Result<Answered, AskOutcome> {
        match tokio::time::timeout(time, self.answered()).await {
            Ok(Some(answered)) => Ok(answered),
            Ok(None) => Err(AskOutcome::Withdrawn),
            Err(_) => {
                self.settle(AskOutcome::TimedOut);
                Err(AskOutcome::TimedOut)
            }
        }
    }

    /// Sends the end of the ask, once.
    fn settle(&mut self, outcome: AskOutcome) {
        let id = &self.ask.id;
        self.desk.waiting().retain(|w| w.pending.ask.id != *id);
        if let Some(tell) = self.tell.take() {
            let id = id.clone();
            tell(AgentEvent::AskSettled { id, outcome });
        }
    }
}

impl Drop for AskWait {
    fn drop(&mut self) {
        // An answer may have arrived that the run has not read.
        let outcome = match self.receiver.try_recv() {
            Ok(answered) => answered.outcome(),
            Err(_) => AskOutcome::Withdrawn,
        };
        self.settle(outcome);
    }
}
