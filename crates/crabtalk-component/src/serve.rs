//! What a component does while it runs.

use crate::{Component, Home, PortFile, peer, system};
use anyhow::Context;
use std::ffi::OsString;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// How long requests may go on after the component was asked to stop; service
/// managers wait longer before they kill.
const GRACE: Duration = Duration::from_secs(3);

/// A program that runs as a service of the system. A gateway is one: it connects
/// to the daemon as a client and offers no tools.
pub trait Service: Send + Sync + Sized + 'static {
    /// Who it is.
    fn component(&self) -> &Component;

    /// What its program is called with before the command, so that its service serves
    /// the same: a program that is several components says which one. Nothing else
    /// needs it.
    fn arguments(&self) -> Vec<OsString> {
        Vec::new()
    }

    /// Runs until `stop` is cancelled. An error ends the process with code 1, and
    /// the service manager starts it again.
    fn serve(
        self,
        home: Home,
        stop: CancellationToken,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// A service that offers tools to agents.
pub trait McpService: Service {
    /// What answers: the endpoint `/mcp` by the Model Context Protocol's streamable
    /// HTTP. It ends its streams when `stop` is cancelled.
    fn router(&self, stop: CancellationToken) -> axum::Router;
}

/// Serves on a free port of 127.0.0.1 and announces it in the home, until `stop`.
///
/// # Errors
/// If no port can be had, or the port file cannot be written.
pub async fn run_mcp<S: McpService>(
    service: S,
    home: Home,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("cannot listen on 127.0.0.1")?;
    let port = listener.local_addr()?.port();
    let router = service.router(stop.child_token());
    let announced = PortFile::announce(&home, service.component(), port)?;
    tracing::info!(name = service.component().name(), port, "ready");
    let stopped = stop.clone();
    let serving = axum::serve(Own(listener), router)
        .with_graceful_shutdown(async move { stopped.cancelled().await });
    let serving = std::future::IntoFuture::into_future(serving);
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return served.context("cannot serve"),
        () = stop.cancelled() => {}
    }
    // Nobody new finds it while the last requests end.
    drop(announced);
    match tokio::time::timeout(GRACE, serving).await {
        Ok(served) => served.context("cannot serve"),
        Err(_) => {
            tracing::warn!("requests that did not end in time were left");
            Ok(())
        }
    }
}

/// Resolves when the system asks the process to end: SIGTERM where there is one,
/// or Ctrl-C.
///
/// # Errors
/// What the system says if signals cannot be heard.
pub async fn stop_signal() -> anyhow::Result<()> {
    system::stop_signal().await
}

/// Takes connections of the same person's programs alone. A port of the loopback
/// is open to everybody on the machine, and a component acts with the person's
/// rights.
struct Own(TcpListener);

impl axum::serve::Listener for Own {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (stream, from) = axum::serve::Listener::accept(&mut self.0).await;
            if peer::is_ours(&stream) {
                let _ = stream.set_nodelay(true);
                return (stream, from);
            }
            tracing::warn!(target: "security", %from, "another user's program tried to connect");
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
