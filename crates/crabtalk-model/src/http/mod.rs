//! HTTP/1.1 calls over pooled connections, through a proxy if one is set.
//! Invariants: idle connections are bounded in number and age; dropping an
//! unfinished answer closes its connection; connection tasks
//! end with their client and its last answer.

mod connect;
mod proxy;
mod socket;
mod tasks;
mod tls;

pub use proxy::Proxies;
pub(crate) use tls::Tls;

use bytes::Bytes;
use connect::Connector;
use futures_core::Stream;
use http::{Extensions, HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::Executor as _;
use hyper_util::client::legacy;
use hyper_util::rt::TokioTimer;
use socket::Answered;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tasks::Tasks;
use tokio::time::Instant;

/// Idle connections to one server: enough for a burst of steps, at some 20 KiB
/// each.
const MAX_IDLE: usize = 8;

/// Longest idle time of a connection; servers and proxies close them at about this age.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// Timeout of a request that only opens a connection.
const EXPECT_TIME: Duration = Duration::from_secs(10);

/// The body of a request; cheap to clone for retries.
pub(crate) type RequestBody = Full<Bytes>;

/// Why a call got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// No server listens at the address, or its name does not resolve.
    #[error("{0}")]
    Connect(String),
    /// The proxy is invalid or refused the connection.
    #[error("{reason}")]
    Proxy {
        /// The proxy's address without credentials, or the variable with the invalid address.
        proxy: String,
        reason: String,
    },
    /// The server's certificate is invalid, or cannot be checked.
    #[error("{0}")]
    Tls(String),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The connection broke, or the answer is not HTTP.
    #[error("{0}")]
    Broken(String),
}

/// The beginning of an answer.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// An HTTP client with a pool of connections to all servers.
pub(crate) struct Client {
    hyper: legacy::Client<Connector, RequestBody>,
    /// Servers to which a connection was opened ahead of a call, and when.
    expected: Mutex<HashMap<Uri, Instant>>,
    proxies: Arc<Proxies>,
    tasks: Arc<Tasks>,
}

impl Client {
    pub(crate) fn new(proxies: Proxies, tls: Tls) -> Self {
        let (proxies, tasks) = (Arc::new(proxies), Tasks::default());
        let mut builder = legacy::Client::builder(tasks.executor());
        builder
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_idle_timeout(MAX_IDLE_TIME)
            .pool_timer(TokioTimer::new());
        let connector = Connector::new(Arc::clone(&proxies), tls);
        Self {
            hyper: builder.build(connector),
            expected: Mutex::default(),
            proxies,
            tasks: Arc::new(tasks),
        }
    }

    /// Passwords of proxies, which errors must not show.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &String> {
        self.proxies.secrets()
    }

    /// Sends a `HEAD` without credentials, so that the next call finds a connection in the
    /// pool; at most once per [`MAX_IDLE_TIME`]. Errors are left to the call.
    pub(crate) fn expect(&self, server: Uri) {
        let now = Instant::now();
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.retain(|_, at| now.duration_since(*at) < MAX_IDLE_TIME);
        if expected.insert(server.clone(), now).is_some() {
            return;
        }
        drop(expected);
        let mut request = Request::new(RequestBody::default());
        *request.method_mut() = Method::HEAD;
        *request.uri_mut() = server;
        self.proxies.introduce(&mut request);
        let answer = self.hyper.request(request);
        self.tasks.executor().execute(async move {
            let _ = tokio::time::timeout(EXPECT_TIME, answer).await;
        });
    }

    /// Sends a request with an absolute address and waits for the
    /// beginning of its answer.
    pub(crate) async fn call(
        &self,
        timeout: Duration,
        mut request: Request<RequestBody>,
    ) -> Result<Response, Failure> {
        self.proxies.introduce(&mut request);
        let response = tokio::time::timeout(timeout, self.answer(request))
            .await
            .map_err(|_| Failure::Timeout(timeout))??;
        let (parts, incoming) = response.into_parts();
        if let Some(answered) = parts.extensions.get::<Answered>() {
            answered.set();
        }
        Ok(Response {
            status: parts.status,
            headers: parts.headers,
            body: Body {
                incoming: incoming.into_data_stream(),
                tasks: Arc::clone(&self.tasks),
            },
        })
    }

    async fn answer(
        &self,
        request: Request<RequestBody>,
    ) -> Result<http::Response<Incoming>, Failure> {
        // The connection of an answer that just ended is about to return to the pool.
        tokio::task::yield_now().await;
        let mut tried = 0;
        loop {
            match self.hyper.request(request.clone()).await {
                // The pooled connection died unnoticed, so the request was not answered.
                Err(error) if tried < MAX_IDLE && was_kept(&error) => tried += 1,
                answered => return answered.map_err(|error| failure(&error)),
            }
        }
    }
}

/// Whether an error comes from a connection that had answered before.
fn was_kept(error: &legacy::Error) -> bool {
    let mut extras = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extras);
    }
    extras.get().is_some_and(Answered::is_set)
}

fn failure(error: &legacy::Error) -> Failure {
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<Failure>()) {
        Some(failure) => failure.clone(),
        None => Failure::Broken(cause.map_or_else(|| error.to_string(), chain)),
    }
}

/// The rest of an answer. Dropping it closes the connection.
pub(crate) struct Body {
    incoming: BodyDataStream<Incoming>,
    tasks: Arc<Tasks>,
}

impl Body {
    /// The next bytes; `None` at the regular end.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        let polled = Pin::new(&mut self.incoming).poll_next(cx);
        polled.map(|item| item.map(|data| data.map_err(|error| chain(&error))))
    }

    /// Reads at most `limit` bytes from the beginning and drops the rest, which closes
    /// the connection.
    pub(crate) async fn beginning(mut self, limit: usize) -> Vec<u8> {
        let mut page = Vec::new();
        while page.len() < limit {
            match poll_fn(|cx| self.poll_data(cx)).await {
                Some(Ok(bytes)) => page.extend_from_slice(&bytes),
                Some(Err(_)) | None => return page,
            }
        }
        page.truncate(limit);
        page
    }

    /// Reads the whole body; `None` if it is longer than `limit`.
    pub(crate) async fn collect(mut self, limit: usize) -> Result<Option<Vec<u8>>, String> {
        let mut whole = Vec::new();
        while let Some(bytes) = poll_fn(|cx| self.poll_data(cx)).await {
            whole.extend_from_slice(&bytes?);
            if whole.len() > limit {
                return Ok(None);
            }
        }
        Ok(Some(whole))
    }

    /// Returns the connection to the pool after the relevant part was read.
    pub(crate) fn keep(self) {
        self.tasks.finish(self.incoming);
    }
}

/// Formats an error with its causes, which hyper reports separately.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
