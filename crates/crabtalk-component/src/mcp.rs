//! A component whose tools are a server of the `rmcp` library.

use crate::{Component, Home, McpService, Service, run_mcp};
use axum::http::header::{HOST, ORIGIN};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A service whose tools come from `rmcp` servers; `make` creates one for each client session.
#[derive(Debug, Clone)]
pub struct Mcp<F> {
    component: Component,
    make: F,
}

impl<F, S> Mcp<F>
where
    F: Fn() -> S + Clone + Send + Sync + 'static,
    S: ServerHandler + Send + 'static,
{
    /// Creates a component with these tools.
    #[must_use]
    pub fn new(component: Component, make: F) -> Self {
        Self { component, make }
    }
}

impl<F, S> Service for Mcp<F>
where
    F: Fn() -> S + Clone + Send + Sync + 'static,
    S: ServerHandler + Send + 'static,
{
    fn component(&self) -> &Component {
        &self.component
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        run_mcp(self, home, stop).await
    }
}

impl<F, S> McpService for Mcp<F>
where
    F: Fn() -> S + Clone + Send + Sync + 'static,
    S: ServerHandler + Send + 'static,
{
    fn router(&self, stop: CancellationToken) -> axum::Router {
        // Refuses pages in a browser, which send an origin. Foreign host names are refused by
        // default.
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop)
            .enforce_origin_validation();
        let make = self.make.clone();
        let sessions = Arc::new(LocalSessionManager::default());
        let mcp = StreamableHttpService::new(move || Ok(make()), sessions, config);
        axum::Router::new()
            .nest_service("/mcp", mcp)
            .layer(axum::middleware::map_request(own_page))
    }
}

/// Removes an origin that is the component's own address, since its page is not foreign.
/// The library then checks that the address is on this machine.
async fn own_page(mut request: axum::extract::Request) -> axum::extract::Request {
    let own = request.headers().get(HOST).map(|host| {
        let origin = ["http://".as_bytes(), host.as_bytes()].concat();
        request
            .headers()
            .get(ORIGIN)
            .is_some_and(|from| from.as_bytes() == origin)
    });
    if own == Some(true) {
        request.headers_mut().remove(ORIGIN);
    }
    request
}
