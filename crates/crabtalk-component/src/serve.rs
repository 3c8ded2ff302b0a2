//! Serves a component until it is stopped.

use crate::{Component, Home, Listener, PortFile, system};
use anyhow::Context;
use std::ffi::OsString;
use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Time for requests in flight after a stop; service managers wait longer before they
/// kill.
const GRACE: Duration = Duration::from_secs(3);

/// A program that runs as a service of the system. A gateway implements only this trait: it is
/// a client of the daemon and offers no tools.
pub trait Service: Send + Sync + Sized + 'static {
    /// The identity of the component.
    fn component(&self) -> &Component;

    /// Arguments before the command in the service's command line, for a program that
    /// contains several components.
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
    /// The router with the endpoint `/mcp`, which serves the streamable HTTP transport of the
    /// Model Context Protocol and ends its streams when `stop` is cancelled.
    fn router(&self, stop: CancellationToken) -> axum::Router;
}

/// Serves on a free port of 127.0.0.1 and announces it in the home, until `stop`.
///
/// # Errors
/// No port is free, or the port file cannot be written.
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
    let serving = axum::serve(Listener::private(listener), router)
        .with_graceful_shutdown(async move { stopped.cancelled().await });
    let serving = std::future::IntoFuture::into_future(serving);
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return served.context("cannot serve"),
        () = stop.cancelled() => {}
    }
    // New clients must not find the component while the last requests end.
    drop(announced);
    match tokio::time::timeout(GRACE, serving).await {
        Ok(served) => served.context("cannot serve"),
        Err(_) => {
            tracing::warn!("dropped requests that did not end in time");
            Ok(())
        }
    }
}

/// Resolves when the system asks the process to end: on SIGTERM, if the system has it,
/// or Ctrl-C.
///
/// # Errors
/// Signal handlers cannot be installed.
pub async fn stop_signal() -> anyhow::Result<()> {
    system::stop_signal().await
}
