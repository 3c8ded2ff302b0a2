//! The accept loop.
//!
//! Invariants: every connection is a task of one set, which is empty when
//! [`serve`] returns; connections beyond the limit are refused, not queued;
//! no accept error ends the loop or makes it spin.

use crate::conn::{self, Ended, HANDSHAKE_TIME};
use crate::crowd::{Crowd, Source};
use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{Server, ServerMessage, Status};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// First pause after an accept error, such as a full descriptor table. It doubles
/// up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Longest pause between two accept attempts.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Timeout for sending a refusal. A refusal fits into any fresh buffer.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// Time for replies in flight after shutdown begins. The daemon promises to end within five
/// seconds.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// A source of connections.
pub trait Accept: Send {
    /// Reading half of a connection.
    type Read: AsyncRead + Unpin + Send + 'static;
    /// Writing half of a connection.
    type Write: AsyncWrite + Unpin + Send + 'static;
    /// Identity of a peer.
    type Peer;
    /// Completes a connection, for example by a TLS handshake.
    type Opening: Future<Output = io::Result<(Self::Read, Self::Write)>> + Send + 'static;

    /// Waits for the next connection. Must be safe to cancel.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Opening, Self::Peer)>> + Send;

    /// The source to which a peer's connections are counted, if known.
    fn source(peer: &Self::Peer) -> Option<Source>;
}

/// Accepts connections until `shutdown`, then drains their replies and
/// returns when every connection is closed.
///
/// Loops with clones of one `crowd` share its limits.
///
/// `session` makes the server of one connection, or refuses the peer with a
/// status that the peer gets before the connection is closed. It runs in the accept
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
    loop {
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
            Ok((opening, peer)) => {
                pause = FIRST_PAUSE;
                let source = A::source(&peer);
                let place = crowd.enter(source);
                let place = place.and_then(|place| Ok((place, session(peer)?)));
                match place {
                    Ok((place, server)) => {
                        let shutdown = shutdown.clone();
                        connections.spawn(async move {
                            let (read, write) = tokio::select! {
                                opened = open(opening) => opened?,
                                () = shutdown.cancelled() => return Ok(()),
                            };
                            conn::run(server, read, write, place, shutdown).await
                        });
                    }
                    Err(status) => {
                        if let Some(turn) = crowd.refusal() {
                            connections.spawn(refuse(opening, status, turn));
                        }
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "cannot accept a connection");
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
    // Removes the socket file before replies drain, so that the next daemon can start.
    drop(listener);
    drain(connections).await;
}

async fn open<C>(opening: impl Future<Output = io::Result<C>>) -> Result<C, Ended> {
    match tokio::time::timeout(HANDSHAKE_TIME, opening).await {
        Ok(opened) => opened.map_err(Ended::NotOpened),
        Err(_) => Err(Ended::Late),
    }
}

/// Sends the reason and closes the connection; gives up on the reason if the peer does not
/// read it.
async fn refuse<R, W: AsyncWrite + Unpin>(
    opening: impl Future<Output = io::Result<(R, W)>>,
    status: Status,
    _turn: OwnedSemaphorePermit,
) -> Result<(), Ended> {
    // An open reading half lets the peer read the reason.
    let (_read, mut write) = open(opening).await?;
    let mut frame = BytesMut::new();
    if codec::encode(&ServerMessage::from(status), &mut frame).is_ok() {
        let _ = tokio::time::timeout(REFUSAL_TIME, write.write_all(&frame)).await;
    }
    Ok(())
}

async fn drain(mut connections: JoinSet<Result<(), Ended>>) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(DRAIN_TIME, all).await.is_err() {
        let open = connections.len();
        tracing::warn!(open, "closed connections whose replies took too long");
        connections.shutdown().await;
    }
}

fn report(ended: Result<Result<(), Ended>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(Ended::Frame(FrameError::Io(error)))) => {
            tracing::debug!(%error, "connection failed");
        }
        Ok(Err(error @ (Ended::Frame(_) | Ended::Crowded))) => {
            tracing::warn!("connection closed: {error}");
        }
        Ok(Err(error @ (Ended::Gone | Ended::Late | Ended::NotOpened(_)))) => {
            tracing::debug!("connection closed: {error}");
        }
        Ok(Err(Ended::Cut(status))) => tracing::info!("connection closed: {}", status.message),
        Ok(Err(Ended::Write(error))) => tracing::warn!(%error, "cannot write a reply"),
        Err(error) if error.is_panic() => {
            tracing::error!("a request handler panicked; its connection is closed: {error}");
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
