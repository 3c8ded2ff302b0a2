//! The runs that a chat follows: the front run, which is shown, and queued ones.
//!
//! Invariants: at most one event of a queued run is read ahead and held until the run
//! is in front; a message is sent once the daemon has those before it, even after a lost
//! connection, which keeps their order; runs up to the last shown one are known, since
//! their start events may arrive later on another connection.

use crabtalk_client::{
    Client, Error, QueuedEvent, Run, RunNews, StreamMsg, new_request_id, stream_event::Event,
};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The next event of a run; `None` after its end.
pub(super) type Next = Option<Result<RunNews, Error>>;

/// A followed run.
pub(super) struct Followed {
    run: Run,
    /// The message that began it; `None` for runs of other clients.
    pub(super) said: Option<String>,
    /// Its number, known from its start event.
    pub(super) number: Option<u64>,
    /// Its last known place in the queue.
    place: Option<QueuedEvent>,
    /// The event that is read ahead.
    held: Option<Next>,
    /// Whether the daemon is known to have the message.
    is_taken: bool,
    /// Whether a withdrawal was requested.
    is_asked_back: bool,
    /// Output of `!` commands in the message.
    outputs: Vec<String>,
    /// Id of the request, which events of the run carry.
    request_id: String,
}

impl Followed {
    fn new(run: Run, said: Option<String>, request_id: String) -> Self {
        Self {
            run,
            said,
            number: None,
            place: None,
            held: None,
            is_taken: false,
            is_asked_back: false,
            outputs: Vec::new(),
            request_id,
        }
    }

    /// The next event. Lost and restored connections of queued runs are not reported.
    fn poll(&mut self, context: &mut Context<'_>, is_front: bool) -> Poll<Next> {
        loop {
            let next = std::task::ready!(Pin::new(&mut self.run).poll_next(context));
            let is_link = match &next {
                Some(Ok(RunNews::Event(_))) => {
                    self.is_taken = true;
                    false
                }
                Some(Ok(RunNews::Lost { .. })) => {
                    self.is_taken = false;
                    self.place = None;
                    true
                }
                Some(Ok(RunNews::Back)) => true,
                Some(Ok(RunNews::Missing { .. }) | Err(_)) | None => false,
            };
            if is_front || !is_link {
                return Poll::Ready(next);
            }
        }
    }

    /// Whether the next message may be sent, since the daemon has this one. After an attach it
    /// must wait for the answer, since a history read later would include the message.
    fn lets_others_on(&self) -> bool {
        self.number.is_some() || self.is_taken
    }
}

/// Runs in the order of the queue.
#[derive(Default)]
pub(super) struct Runs {
    followed: VecDeque<Followed>,
    /// Number of the last run that is shown, live or from the history.
    told: u64,
    /// Number of the last run that is shown as failed.
    failed: u64,
    /// Whether a run may have started that is neither followed nor shown.
    is_behind: bool,
}

impl Runs {
    /// Sends a message, whose run is followed after all others.
    pub(super) fn send(&mut self, client: &Client, mut request: StreamMsg, said: String) {
        let request_id = new_request_id();
        request.request_id = Some(request_id.clone());
        let run = client.stream(request);
        self.followed
            .push_back(Followed::new(run, Some(said), request_id));
    }

    /// Stores the outputs of `!` commands with the message that was just sent.
    pub(super) fn keep_outputs(&mut self, outputs: Vec<String>) {
        if let Some(last) = self.followed.back_mut() {
            last.outputs = outputs;
        }
    }

    /// Marks the newest queued message that the daemon has as being withdrawn; returns its id.
    pub(super) fn ask_back(&mut self) -> Option<String> {
        let is_queued = |run: &&mut Followed| {
            run.said.is_some() && run.number.is_none() && run.is_taken && !run.is_asked_back
        };
        let run = self.followed.iter_mut().rev().find(is_queued)?;
        run.is_asked_back = true;
        Some(run.request_id.clone())
    }

    /// Removes a withdrawn message; returns its text and the outputs in it.
    pub(super) fn withdraw(&mut self, request_id: &str) -> Option<(String, Vec<String>)> {
        let is = |run: &Followed| run.request_id == request_id && run.is_asked_back;
        let at = self.followed.iter().position(is)?;
        let run = self.followed.remove(at)?;
        Some((run.said?, run.outputs))
    }

    /// The id of the front run if its withdrawal was requested before it started.
    pub(super) fn asked_back(&self) -> Option<String> {
        let front = self.followed.front()?;
        let is = front.is_asked_back && front.number.is_none();
        is.then(|| front.request_id.clone())
    }

    /// Records that a message could not be withdrawn.
    pub(super) fn stays(&mut self, request_id: &str) {
        let mut runs = self.followed.iter_mut();
        if let Some(run) = runs.find(|run| run.request_id == request_id) {
            run.is_asked_back = false;
        }
    }

    /// Follows an active run of another client.
    pub(super) fn push_front(&mut self, run: Run) {
        self.followed
            .push_front(Followed::new(run, None, String::new()));
    }

    pub(super) fn front(&mut self) -> Option<&mut Followed> {
        self.followed.front_mut()
    }

    /// Removes the front run; returns its number if it had started.
    pub(super) fn pop(&mut self) -> Option<u64> {
        self.followed.pop_front()?.number
    }

    /// Drops all runs, for another conversation.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of the last run that is shown.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Records that all runs up to this one are shown.
    pub(super) fn tell(&mut self, number: u64) {
        self.told = self.told.max(number);
    }

    /// Number of the last run that is shown as failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Records that a run is shown as failed.
    pub(super) fn fail(&mut self, number: u64) {
        self.failed = self.failed.max(number);
    }

    /// Records that a run may have started unnoticed.
    pub(super) fn fall_behind(&mut self) {
        self.is_behind = true;
    }

    /// Whether to look for such a run now, because no run is followed.
    pub(super) fn catches_up(&mut self) -> bool {
        self.is_empty() && std::mem::take(&mut self.is_behind)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Whether the front run has started.
    pub(super) fn is_running(&self) -> bool {
        self.followed
            .front()
            .is_some_and(|run| run.number.is_some())
    }

    /// Whether a run is or was shown.
    pub(super) fn knows(&self, number: u64) -> bool {
        number <= self.told
    }

    /// Whether the chat attaches to a run of another client whose number is unknown.
    pub(super) fn is_attaching(&self) -> bool {
        let mut runs = self.followed.iter();
        runs.any(|run| run.said.is_none() && run.number.is_none())
    }

    /// Whether the run was started by a message of this chat.
    pub(super) fn is_own(&self, request_id: &str) -> bool {
        !request_id.is_empty() && self.followed.iter().any(|run| run.request_id == request_id)
    }

    /// Number of the front run.
    pub(super) fn number(&self) -> Option<u64> {
        self.followed.front()?.number
    }

    /// Queued messages, each with its place in the queue if known.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&str, Option<&QueuedEvent>)> {
        let own = self.followed.iter().filter(|run| run.number.is_none());
        own.filter_map(|run| Some((run.said.as_deref()?, run.place.as_ref())))
    }

    /// The front run's place in the queue, if runs of others precede it.
    pub(super) fn place(&self) -> Option<&QueuedEvent> {
        let front = self.followed.front()?;
        front.place.as_ref().filter(|_| front.number.is_none())
    }

    /// The next event of the front run; pending without one.
    pub(super) async fn next(&mut self) -> Next {
        poll_fn(|context| {
            let mut front = None;
            for (index, followed) in self.followed.iter_mut().enumerate() {
                if followed.held.is_none()
                    && let Poll::Ready(next) = followed.poll(context, index == 0)
                {
                    // A place in the queue is reported immediately.
                    if let Some(Ok(RunNews::Event(event))) = &next
                        && let Some(Event::Queued(place)) = &event.event
                    {
                        followed.place = Some(place.clone());
                        return Poll::Ready(next);
                    }
                    followed.held = Some(next);
                }
                if index == 0 {
                    front = followed.held.take();
                    if front.is_some() {
                        break;
                    }
                }
                if !followed.lets_others_on() {
                    break;
                }
            }
            front.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_client::Endpoint;

    #[test]
    fn shown_and_own_runs_are_known() {
        let home = tempfile::tempdir().unwrap();
        let client = Client::new(Endpoint::of_home(home.path()), "test");
        let mut runs = Runs::default();
        for number in 1..=3 {
            runs.send(&client, Default::default(), "hello".into());
            let id = runs.front().unwrap().request_id.clone();
            assert!(runs.is_own(&id) && !runs.is_own(""));
            assert!(!runs.knows(number));
            runs.front().unwrap().number = Some(number);
            runs.tell(number);
            assert!(runs.knows(number), "shown");
            assert_eq!(runs.pop(), Some(number));
            assert!(runs.knows(number), "ended");
        }
        assert!(!runs.knows(4));
        runs.clear();
        assert!(!runs.knows(3), "another conversation");
    }

    #[tokio::test]
    async fn messages_are_sent_in_order() {
        let home = tempfile::tempdir().unwrap();
        let daemon = std::os::unix::net::UnixListener::bind(home.path().join("daemon.sock"));
        let daemon = daemon.unwrap();
        daemon.set_nonblocking(true).unwrap();
        let client = Client::new(Endpoint::of_home(home.path()), "test");
        let mut runs = Runs::default();
        for said in ["one", "two"] {
            runs.send(&client, Default::default(), said.into());
        }
        let mut next = std::pin::pin!(runs.next());
        for _ in 0..100 {
            assert!(futures_util::poll!(&mut next).is_pending());
            tokio::task::yield_now().await;
        }
        daemon.accept().unwrap();
        assert!(daemon.accept().is_err(), "the second one was sent");
    }
}
