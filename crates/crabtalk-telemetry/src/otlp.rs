//! Sends spans to a collector: OTLP over HTTP, as JSON.
//!
//! Invariants: queueing a span never waits; spans that the collector does not accept
//! after a few attempts are dropped and logged.

use crate::runs::Span;
use crate::settings::Otlp;
use anyhow::{Context, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

/// Maximum number of queued spans.
const WAITING: usize = 2048;

/// Maximum number of spans in one request.
const BATCH: usize = 256;

/// Maximum wait for further spans of a request.
const EVERY: Duration = Duration::from_secs(2);

/// Timeout of a request.
const WITHIN: Duration = Duration::from_secs(10);

/// Attempts for each request.
const TRIES: u32 = 3;

/// The queue of spans.
pub(crate) fn queue() -> (Sender<Span>, Receiver<Span>) {
    channel(WAITING)
}

/// Queues spans; drops those beyond the limit.
pub(crate) fn put(queue: &Sender<Span>, spans: Vec<Span>) {
    for span in spans {
        if queue.try_send(span).is_err() {
            tracing::warn!("spans dropped: the collector is too slow");
            return;
        }
    }
}

/// Sends spans until `stop`, then those left in the queue.
pub(crate) async fn send(settings: Otlp, mut spans: Receiver<Span>, stop: CancellationToken) {
    let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let mut batch = Vec::new();
    loop {
        let stopped = stop.is_cancelled();
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopped => spans.close(),
            count = spans.recv_many(&mut batch, BATCH) => if count == 0 { return },
        }
        if !stopped {
            // Collects further spans for the request.
            let more = async {
                while batch.len() < BATCH && spans.recv_many(&mut batch, BATCH).await > 0 {}
            };
            tokio::select! {
                _ = tokio::time::timeout(EVERY, more) => {}
                () = stop.cancelled() => spans.close(),
            }
        }
        if batch.is_empty() {
            continue;
        }
        let count = batch.len();
        if let Err(error) = tried(&client, &settings, &std::mem::take(&mut batch)).await {
            tracing::warn!(error = format!("{error:#}"), spans = count, "spans dropped");
        }
    }
}

type Http = Client<HttpConnector, Full<Bytes>>;

async fn tried(client: &Http, settings: &Otlp, spans: &[Span]) -> anyhow::Result<()> {
    let spans: Vec<_> = spans.iter().map(Span::to_json).collect();
    let resource =
        json!({"attributes": [{"key": "service.name", "value": {"stringValue": "crabtalk"}}]});
    let scope = json!({"name": "crabtalk-telemetry", "version": env!("CARGO_PKG_VERSION")});
    let body = json!({"resourceSpans": [{
        "resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    let body = Bytes::from(serde_json::to_vec(&body)?);
    let mut pause = Duration::from_millis(500);
    let mut last = Ok(());
    for number in 0..TRIES {
        if number > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        last = once(client, settings, body.clone()).await;
        if last.is_ok() {
            break;
        }
    }
    last
}

async fn once(client: &Http, settings: &Otlp, body: Bytes) -> anyhow::Result<()> {
    let url = format!("{}/v1/traces", settings.endpoint.trim_end_matches('/'));
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&url)
        .header("content-type", "application/json");
    for (name, value) in &settings.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(body))
        .context("a configured header is invalid")?;
    let answer = tokio::time::timeout(WITHIN, client.request(request)).await;
    let answer = answer.with_context(|| format!("{url} does not answer"))?;
    let status = answer
        .with_context(|| format!("cannot reach {url}"))?
        .status();
    if !status.is_success() {
        bail!("{url} answered {status}");
    }
    Ok(())
}
