//! A connection whose server may neither ask without end nor leave unread what it is
//! sent.
//!
//! The library starts a task for each request of the server's and for each message to
//! it, however many there are; here is what bounds them.
//!
//! Invariants: from a server that has so many questions without an answer nothing more is
//! read until one is answered, over HTTP where its events come in, since the library's
//! task there sends the answers, too; a server that takes nothing from its pipe for as long as
//! a call may be silent, and says nothing meanwhile, has its connection ended.

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Questions of a server that are answered at once: more than calls have, each of which
/// may ask one person one thing.
const MAX_ASKED: usize = 64;

/// How often the time of a message may begin again because its server said something.
const MAX_TURNS: u32 = 60;

/// What a server has asked, and when it last said something.
pub(crate) struct State {
    asked: Mutex<HashSet<RequestId>>,
    answered: Notify,
    heard: Mutex<Instant>,
}

impl State {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            answered: Notify::new(),
            heard: Mutex::new(Instant::now()),
        })
    }

    fn asked(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        // Whole after each line, so a panic spoils nothing.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Instant> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, id: &RequestId) {
        if self.asked().remove(id) {
            self.answered.notify_waiters();
        }
    }

    /// Waits until the server may ask again.
    pub(crate) async fn room(&self) {
        loop {
            let mut answered = pin!(self.answered.notified());
            // From here on no answer is missed.
            answered.as_mut().enable();
            if self.asked().len() < MAX_ASKED {
                return;
            }
            answered.await;
        }
    }

    fn note(&self, message: &ServerJsonRpcMessage) {
        *self.heard() = Instant::now();
        match message {
            JsonRpcMessage::Request(request) => {
                self.asked().insert(request.id.clone());
            }
            JsonRpcMessage::Notification(told) => {
                if let ServerNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

/// Notes that a question is answered, or that nobody answers it any more.
struct Answered {
    state: Arc<State>,
    id: RequestId,
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.state.forget(&self.id);
    }
}

/// What happens to a server that takes nothing.
#[derive(Clone)]
pub(crate) struct Stuck {
    /// How long a message may wait.
    pub(crate) after: Duration,
    /// Cancelled then.
    pub(crate) tell: CancellationToken,
}

/// The library's transport within its bounds.
pub(crate) struct Bounded<T> {
    inner: T,
    state: Arc<State>,
    /// `None` over HTTP: a message waits there for its answer, and whoever reads events
    /// waits for room.
    stuck: Option<Stuck>,
}

impl<T> Bounded<T> {
    /// The pipes of a program.
    pub(crate) fn pipes(inner: T, stuck: Stuck) -> Self {
        Self {
            inner,
            state: State::new(),
            stuck: Some(stuck),
        }
    }

    /// HTTP, whose events are read by whoever else has the state.
    pub(crate) fn http(inner: T, state: Arc<State>) -> Self {
        Self {
            inner,
            state,
            stuck: None,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let state = Arc::clone(&self.state);
        let answered = id.map(|id| Answered {
            state: Arc::clone(&state),
            id,
        });
        let stuck = self.stuck.clone();
        let sent = self.inner.send(message);
        async move {
            let _answered = answered;
            match stuck {
                None => sent.await,
                Some(stuck) => {
                    tokio::select! {
                        sent = sent => sent,
                        never = is_stuck(&state, stuck) => match never {},
                    }
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        if self.stuck.is_some() {
            self.state.room().await;
        }
        let message = self.inner.receive().await?;
        self.state.note(&message);
        Some(message)
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Tells when a message has waited for too long. It goes on waiting then: half of it may
/// be in the pipe, so nothing can follow it, and the connection ends.
async fn is_stuck(state: &State, stuck: Stuck) -> std::convert::Infallible {
    let at_most = Instant::now() + stuck.after * MAX_TURNS;
    let mut until = Instant::now() + stuck.after;
    loop {
        sleep_until(until.min(at_most)).await;
        let next = *state.heard() + stuck.after;
        if next <= until || until >= at_most {
            stuck.tell.cancel();
            return std::future::pending().await;
        }
        until = next;
    }
}

#[cfg(test)]
mod tests;
