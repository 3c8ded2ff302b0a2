//! Serves HTTP to whoever comes, as a gateway does: nobody may be trusted there.

use anyhow::Context;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Connections at a time: who sends nothing must not take all the files that the
/// process may open.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may last, from its first byte to the end of its answer: who
/// sends a byte a minute holds a place no longer than others, and where none is left not as long.
const CONNECTION_WITHIN: Duration = Duration::from_secs(30);

/// How long requests may go on after the component was asked to stop.
const GRACE: Duration = Duration::from_secs(3);

/// Serves one request per connection until `stop`, with a bound on their number and
/// on the time that each takes. Where all places are taken, whoever has been sending its request
/// for longest gives its own to the next.
///
/// # Errors
/// What the system says if the listener has no address; a request that fails costs
/// its connection alone.
pub async fn serve_http(
    listener: TcpListener,
    router: axum::Router,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let address = listener.local_addr().context("cannot serve")?;
    tracing::info!(%address, "ready");
    let mut places = Places::new(router, CONNECTION_WITHIN);
    tokio::select! {
        () = stop.cancelled() => {}
        never = places.serve(&listener) => match never {},
    }
    drop(listener);
    let ended = async { while places.connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("requests that did not end in time were left");
    }
    Ok(())
}

/// Connections that are served.
struct Places {
    router: axum::Router,
    within: Duration,
    connections: JoinSet<()>,
    /// Those that may still be sending, the oldest first.
    sending: VecDeque<(AbortHandle, Arc<AtomicBool>)>,
}

impl Places {
    fn new(router: axum::Router, within: Duration) -> Self {
        Self {
            router,
            within,
            connections: JoinSet::new(),
            sending: VecDeque::new(),
        }
    }

    /// Serves whoever comes. One that came waits here while there is no room for it.
    async fn serve(&mut self, listener: &TcpListener) -> Infallible {
        let mut next = None;
        loop {
            if next.is_some()
                && self.has_room()
                && let Some(stream) = next.take()
            {
                self.give(stream);
            }
            tokio::select! {
                Some(_) = self.connections.join_next() => {}
                accepted = listener.accept(), if next.is_none() => {
                    // One that broke at once says nothing of the next.
                    next = accepted.ok().map(|(stream, _)| stream);
                }
            }
        }
    }

    /// Whether another one may come: there is a place, or one that can be had.
    fn has_room(&mut self) -> bool {
        let is_sending = |(task, sent): &(AbortHandle, Arc<AtomicBool>)| {
            !task.is_finished() && !sent.load(Ordering::Relaxed)
        };
        self.sending.retain(is_sending);
        self.connections.len() < MAX_CONNECTIONS || !self.sending.is_empty()
    }

    /// Serves one that came, in the place of another if need be.
    fn give(&mut self, stream: TcpStream) {
        if self.connections.len() >= MAX_CONNECTIONS
            && let Some((oldest, _)) = self.sending.pop_front()
        {
            oldest.abort();
        }
        let sent = Arc::<AtomicBool>::default();
        let is_sent = Arc::clone(&sent);
        let router = self.router.clone().layer(axum::middleware::map_request(
            move |request: axum::extract::Request| {
                let sent = Arc::clone(&is_sent);
                std::future::ready(request.map(|body| Body::new(Watched::new(body, sent))))
            },
        ));
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let within = self.within;
        let task = self.connections.spawn(async move {
            // What fails or takes too long costs its connection alone.
            let _ = tokio::time::timeout(within, serving).await;
        });
        self.sending.push_back((task, sent));
    }
}

/// A request's body, which notes when all of it is there.
struct Watched {
    body: Body,
    sent: Arc<AtomicBool>,
}

impl Watched {
    fn new(body: Body, sent: Arc<AtomicBool>) -> Self {
        sent.store(body.is_end_stream(), Ordering::Relaxed);
        Self { body, sent }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.sent.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
