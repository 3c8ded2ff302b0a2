//! Connections of one provider that wait for their next call.

use super::{Link, poll_frame};
use hyper::body::Incoming;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Connections kept: enough for a burst of steps, few enough that an idle
/// daemon holds no memory worth the name (a connection costs some 20 KiB).
const MAX_IDLE: usize = 8;

/// Older ones are not worth a try: servers and proxies close them about then.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// What may follow an answer before its connection is free again.
const MAX_REST_FRAMES: usize = 8;

/// A connection at rest.
pub(super) struct Idle {
    link: Link,
    /// The rest of the last answer, as a rule only its end.
    rest: Incoming,
    since: Instant,
}

impl Idle {
    pub(super) fn new(link: Link, rest: Incoming) -> Self {
        Self {
            link,
            rest,
            since: Instant::now(),
        }
    }

    fn is_fresh(&self) -> bool {
        self.since.elapsed() < MAX_IDLE_TIME
    }

    /// Reads what followed the last answer and looks whether the server has
    /// closed in the meantime.
    fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.link.drive(cx);
        let mut ended = false;
        for _ in 0..MAX_REST_FRAMES {
            match poll_frame(&mut self.rest, cx) {
                Poll::Ready(Some(Ok(_))) => self.link.drive(cx),
                Poll::Ready(None) => {
                    ended = true;
                    break;
                }
                Poll::Ready(Some(Err(_))) | Poll::Pending => return false,
            }
        }
        self.link.drive(cx);
        ended
            && self.link.connection.is_some()
            && matches!(self.link.sender.poll_ready(cx), Poll::Ready(Ok(())))
    }
}

/// The idle connections of one provider.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
}

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what has rested too long.
    pub(crate) fn close_stale(&self) {
        self.idle().retain(Idle::is_fresh);
    }

    pub(super) fn put(&self, idle: Idle) {
        let mut all = self.idle();
        all.retain(Idle::is_fresh);
        if all.len() < MAX_IDLE {
            all.push(idle);
        }
    }

    /// The most recently used connection that still works.
    pub(super) async fn take(&self) -> Option<Link> {
        loop {
            let mut newest = {
                let mut all = self.idle();
                all.retain(Idle::is_fresh);
                all.pop()?
            };
            if poll_fn(|cx| Poll::Ready(newest.is_usable(cx))).await {
                return Some(newest.link);
            }
        }
    }
}
