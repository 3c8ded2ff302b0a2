//! The runs that a chat follows: the one in front, and those that wait.
//!
//! Invariant: news of a run that waits are held until it is in front, one of
//! them at most, so that nothing is read that nobody shows.

use crabtalk_client::{Error, Run, RunNews};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// What comes next of a run; `None` behind its end.
pub(super) type Next = Option<Result<RunNews, Error>>;

/// A run that is followed.
pub(super) struct Followed {
    run: Run,
    /// What the person said to begin it; `None` for somebody else's.
    pub(super) said: Option<String>,
    /// Its number, from its Start on.
    pub(super) number: Option<u64>,
    held: Option<Next>,
}

/// Runs in the order in which the daemon takes them.
#[derive(Default)]
pub(super) struct Runs(VecDeque<Followed>);

impl Runs {
    /// A run that the person began, behind all others.
    pub(super) fn push(&mut self, run: Run, said: String) {
        self.0.push_back(Followed {
            run,
            said: Some(said),
            number: None,
            held: None,
        });
    }

    /// Somebody else's run, which is in flight.
    pub(super) fn push_front(&mut self, run: Run, number: Option<u64>) {
        self.0.push_front(Followed {
            run,
            said: None,
            number,
            held: None,
        });
    }

    pub(super) fn front(&mut self) -> Option<&mut Followed> {
        self.0.front_mut()
    }

    pub(super) fn pop(&mut self) {
        self.0.pop_front();
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the run in front has begun.
    pub(super) fn is_running(&self) -> bool {
        self.0.front().is_some_and(|run| run.number.is_some())
    }

    pub(super) fn knows(&self, number: u64) -> bool {
        self.0.iter().any(|run| run.number == Some(number))
    }

    /// What waits for its turn.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        let own = self.0.iter().filter(|run| run.number.is_none());
        own.filter_map(|run| run.said.as_deref())
    }

    /// The next news of the run in front; never, if there is none.
    pub(super) async fn next(&mut self) -> Next {
        poll_fn(|context| {
            let mut front = None;
            for (index, followed) in self.0.iter_mut().enumerate() {
                if followed.held.is_none()
                    && let Poll::Ready(next) = Pin::new(&mut followed.run).poll_next(context)
                {
                    followed.held = Some(next);
                }
                if index == 0 {
                    front = followed.held.take();
                    if front.is_some() {
                        break;
                    }
                }
            }
            front.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
