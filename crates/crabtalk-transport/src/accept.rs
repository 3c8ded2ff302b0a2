//! The accept loop.
//!
//! Invariants: every connection is a task of one set, which is empty when
//! [`serve`] returns; beyond the limit a connection is refused, not queued;
//! no accept error makes the loop spin or end; no source of connections takes
//! what others need (see [`Crowd`]).

use crate::conn::{self, Ended};
use crate::crowd::{Crowd, Source};
use crate::half::ReadHalf;
use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{Server, ServerMessage, Status};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// First pause after an accept error such as a full table of files, doubling
/// up to [`MAX_PAUSE`]. Closing connections end such a state, so it is asked
/// again soon, but not in a loop.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Longest pause between two accept attempts: what a person notices.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Connections that are accepted before those that are open have their turn: a
/// flood of new ones costs them the time of so many.
const IN_A_ROW: u32 = 8;

/// How long writing a refusal may take. It fits into any fresh buffer.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// A source of connections.
pub trait Accept: Send {
    /// Reading half of its connections.
    type Read: ReadHalf + 'static;
    /// Writing half of its connections.
    type Write: AsyncWrite + Unpin + Send + 'static;
    /// What is known about who connects.
    type Peer;

    /// Waits for the next connection. Must be safe to cancel.
    fn accept(
        &mut self,
    ) -> impl Future<Output = io::Result<Accepted<Self::Read, Self::Write, Self::Peer>>> + Send;

    /// By what a peer's connections are counted; `None` if it cannot be told.
    fn source(peer: &Self::Peer) -> Option<Source>;
}

/// A new connection.
#[derive(Debug)]
pub struct Accepted<R, W, P> {
    /// Its reading half.
    pub read: R,
    /// Its writing half.
    pub write: W,
    /// Who connects.
    pub peer: P,
}

/// Accepts connections until `shutdown`, then lets their replies drain and
/// returns when every connection is closed.
///
/// Loops that are given clones of one `crowd` share its limits.
///
/// `session` makes the server of one connection, or refuses the peer with a
/// status that it gets before the connection is closed. It runs in the accept
/// loop, so it must be quick.
pub async fn serve<A, S>(
    mut listener: A,
    crowd: Crowd,
    session: impl Fn(A::Peer) -> Result<S, Status>,
    shutdown: CancellationToken,
) where
    A: Accept,
    S: Server + 'static,
{
    let mut connections = JoinSet::new();
    let mut pause = FIRST_PAUSE;
    let mut in_a_row = 0;
    loop {
        in_a_row += 1;
        if in_a_row > IN_A_ROW {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(Accepted { read, write, peer }) => {
                pause = FIRST_PAUSE;
                let source = A::source(&peer);
                let place = crowd.enter(source);
                let place = place.and_then(|place| Ok((place, session(peer)?)));
                match place {
                    Ok((place, server)) => {
                        let serving = conn::run(server, read, write, place, shutdown.clone());
                        connections.spawn(serving);
                    }
                    Err(status) => {
                        if let Some(turn) = crowd.refusal() {
                            connections.spawn(refuse(write, status, turn));
                        }
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "a connection could not be accepted");
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
    // Nobody may connect any more, and the socket file goes, before replies
    // drain: the next daemon may start meanwhile.
    drop(listener);
    drain(connections, crowd.limits().drain).await;
}

/// Says why before closing. A peer whose buffer does not take a short message
/// is just closed.
async fn refuse(
    mut write: impl AsyncWrite + Unpin,
    status: Status,
    _turn: OwnedSemaphorePermit,
) -> Result<(), Ended> {
    let mut frame = BytesMut::new();
    if codec::encode(&ServerMessage::from(status), &mut frame).is_ok() {
        let _ = tokio::time::timeout(REFUSAL_TIME, write.write_all(&frame)).await;
    }
    Ok(())
}

async fn drain(mut connections: JoinSet<Result<(), Ended>>, deadline: Duration) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(deadline, all).await.is_err() {
        let open = connections.len();
        tracing::warn!(
            open,
            ?deadline,
            "connections were cut: their replies took too long"
        );
        connections.shutdown().await;
    }
}

fn report(ended: Result<Result<(), Ended>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(Ended::Gone)) => tracing::debug!("a client went away before its reply was complete"),
        Ok(Err(Ended::Frame(FrameError::Io(error)))) => {
            tracing::debug!(%error, "a connection failed");
        }
        Ok(Err(Ended::Frame(error))) => tracing::warn!("a connection was closed: {error}"),
        Ok(Err(error @ Ended::Crowded)) => tracing::warn!("a connection was closed: {error}"),
        Ok(Err(error @ (Ended::Late | Ended::Refused))) => {
            tracing::debug!("a connection was closed: {error}");
        }
        Ok(Err(Ended::Cut(status))) => {
            tracing::info!("a connection was ended: {}", status.message);
        }
        Ok(Err(Ended::Write(error))) => tracing::warn!(%error, "a reply could not be written"),
        Err(error) if error.is_panic() => {
            tracing::error!("answering a request panicked; its connection is closed: {error}");
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
