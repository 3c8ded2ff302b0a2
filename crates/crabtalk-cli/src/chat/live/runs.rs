//! The runs that a chat follows: the one in front, and those that wait.
//!
//! Invariants: news of a run that waits are held until it is in front, one of
//! them at most, so that nothing is read that nobody shows; a message is sent when the
//! daemon has those before it, also after a connection was lost, so that it takes them
//! in their order; a run that was shown, and each before it, is known from then on, since
//! word of its begin comes on another connection and may come later.

use crabtalk_client::{Error, QueuedEvent, Run, RunNews, stream_event::Event};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What comes next of a run; `None` behind its end.
pub(super) type Next = Option<Result<RunNews, Error>>;

/// A run that is followed.
pub(super) struct Followed {
    run: Run,
    /// What the person said to begin it; `None` for somebody else's.
    pub(super) said: Option<String>,
    /// Its number, from its Start on.
    pub(super) number: Option<u64>,
    /// Its place in the queue, as the daemon said last.
    place: Option<QueuedEvent>,
    held: Option<Next>,
    /// What was put into it and stands on the screen.
    pub(super) read: Vec<String>,
    /// Whether the daemon has it, as far as one knows.
    is_taken: bool,
}

impl Followed {
    fn new(run: Run, said: Option<String>) -> Self {
        Self {
            run,
            said,
            number: None,
            place: None,
            held: None,
            read: Vec::new(),
            is_taken: false,
        }
    }

    /// Its next news, where it is not in front: a place in the queue, or what is held
    /// until it is. That its connection was lost and is back is nobody's news yet.
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

    /// Whether what was said behind it may be sent: the daemon has this one, so that
    /// it takes the other one behind it.
    fn lets_others_on(&self) -> bool {
        self.said.is_none() || self.number.is_some() || self.is_taken
    }
}

/// Runs in the order in which the daemon takes them.
#[derive(Default)]
pub(super) struct Runs {
    followed: VecDeque<Followed>,
    /// The number of the last run that is shown, or stands in a history that is.
    told: u64,
    /// The number of the last run that is shown to have failed.
    failed: u64,
    /// Whether another run may have begun that is neither followed nor shown.
    is_behind: bool,
}

impl Runs {
    /// A run that the person began, behind all others.
    pub(super) fn push(&mut self, run: Run, said: String) {
        self.followed.push_back(Followed::new(run, Some(said)));
    }

    /// Somebody else's run, which is in flight.
    pub(super) fn push_front(&mut self, run: Run) {
        self.followed.push_front(Followed::new(run, None));
    }

    pub(super) fn front(&mut self) -> Option<&mut Followed> {
        self.followed.front_mut()
    }

    /// The run in front is over; its number, if it had begun.
    pub(super) fn pop(&mut self) -> Option<u64> {
        self.followed.pop_front()?.number
    }

    /// Another conversation comes, with numbers of its own.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The number of the last run that is shown.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Everything up to that run is shown.
    pub(super) fn tell(&mut self, number: u64) {
        self.told = self.told.max(number);
    }

    /// The number of the last run that is shown to have failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// A run is shown to have failed.
    pub(super) fn fail(&mut self, number: u64) {
        self.failed = self.failed.max(number);
    }

    /// Another run may have begun.
    pub(super) fn fall_behind(&mut self) {
        self.is_behind = true;
    }

    /// Whether that has to be looked at now, since nothing is followed.
    pub(super) fn catches_up(&mut self) -> bool {
        self.is_empty() && std::mem::take(&mut self.is_behind)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Whether the run in front has begun.
    pub(super) fn is_running(&self) -> bool {
        self.followed
            .front()
            .is_some_and(|run| run.number.is_some())
    }

    /// Whether a run is shown, or was.
    pub(super) fn knows(&self, number: u64) -> bool {
        number <= self.told
    }

    /// The number of the run in front.
    pub(super) fn number(&self) -> Option<u64> {
        self.followed.front()?.number
    }

    /// What waits for its turn, each with its place in the queue where that is
    /// known.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&str, Option<&QueuedEvent>)> {
        let own = self.followed.iter().filter(|run| run.number.is_none());
        own.filter_map(|run| Some((run.said.as_deref()?, run.place.as_ref())))
    }

    /// The place in the queue of the run in front, if what comes before it is not
    /// followed here.
    pub(super) fn place(&self) -> Option<&QueuedEvent> {
        let front = self.followed.front()?;
        front.place.as_ref().filter(|_| front.number.is_none())
    }

    /// The next news of the run in front; never, if there is none.
    pub(super) async fn next(&mut self) -> Next {
        poll_fn(|context| {
            let mut front = None;
            for (index, followed) in self.followed.iter_mut().enumerate() {
                if followed.held.is_none()
                    && let Poll::Ready(next) = followed.poll(context, index == 0)
                {
                    // A place is no news of the run, and held up by none.
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
    use crabtalk_client::{Client, Endpoint};

    #[test]
    fn late_word_of_a_run_that_is_over_is_no_news() {
        let home = tempfile::tempdir().unwrap();
        let client = Client::new(Endpoint::of_home(home.path()), "test");
        let mut runs = Runs::default();
        for number in 1..=3 {
            runs.push(client.stream(Default::default()), "hello".into());
            assert!(!runs.knows(number));
            runs.front().unwrap().number = Some(number);
            runs.tell(number);
            assert!(runs.knows(number), "it is shown");
            assert_eq!(runs.pop(), Some(number));
            assert!(runs.knows(number), "it was followed to its end");
        }
        assert!(!runs.knows(4));
        runs.clear();
        assert!(!runs.knows(3), "it is another conversation's");
    }

    #[tokio::test]
    async fn a_message_is_not_sent_before_the_daemon_has_the_one_before_it() {
        let home = tempfile::tempdir().unwrap();
        let daemon = std::os::unix::net::UnixListener::bind(home.path().join("daemon.sock"));
        let daemon = daemon.unwrap();
        daemon.set_nonblocking(true).unwrap();
        let client = Client::new(Endpoint::of_home(home.path()), "test");
        let mut runs = Runs::default();
        for said in ["one", "two"] {
            runs.push(client.stream(Default::default()), said.into());
        }
        let mut next = std::pin::pin!(runs.next());
        for _ in 0..100 {
            assert!(futures_util::poll!(&mut next).is_pending());
            tokio::task::yield_now().await;
        }
        daemon.accept().unwrap();
        assert!(daemon.accept().is_err(), "another one came");
    }
}
