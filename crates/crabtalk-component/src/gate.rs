//! Serves HTTP to whoever comes, as a gateway does: nobody may be trusted there.

use anyhow::Context;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at a time: who sends nothing must not take all the files that the
/// process may open.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may last, from its first byte to the end of its answer: who
/// sends a byte a minute holds a place no longer than others.
const CONNECTION_WITHIN: Duration = Duration::from_secs(30);

/// How long requests may go on after the component was asked to stop.
const GRACE: Duration = Duration::from_secs(3);

/// Serves one request per connection until `stop`, with a bound on their number and
/// on the time that each takes.
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
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                // One that broke at once says nothing of the next.
                let Ok((stream, _)) = accepted else { continue };
                let serving = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .keep_alive(false)
                    .serve_connection(
                        TokioIo::new(stream),
                        TowerToHyperService::new(router.clone()),
                    );
                connections.spawn(tokio::time::timeout(CONNECTION_WITHIN, serving));
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("requests that did not end in time were left");
    }
    Ok(())
}
