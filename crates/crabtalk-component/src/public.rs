//! Serves HTTP to untrusted clients, as a gateway does.

use crate::Listener;
use anyhow::Context;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of connections, so that silent clients cannot take all file descriptors.
const MAX_CONNECTIONS: usize = 64;

/// Maximum duration of a connection, from accept to the end of its response, so that a
/// slow client frees its place.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for requests in flight after a stop.
const GRACE: Duration = Duration::from_secs(3);

/// Serves one request per connection until `stop`, with a limit on the number of
/// connections and on the duration of each.
///
/// # Errors
/// If the listener has no address. A failed request ends its own connection only.
pub async fn serve_http(
    listener: TcpListener,
    router: axum::Router,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let address = listener.local_addr().context("cannot serve")?;
    tracing::info!(%address, "ready");
    let mut listener = Listener::public(listener);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let accepting = async {
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
            let serving = http1::Builder::new().keep_alive(false).serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(router.clone()),
            );
            connections.spawn(async move {
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, serving).await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accepting => {}
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(GRACE, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!("dropped requests that did not end in time");
    }
    Ok(())
}
