//! Accepts and verifies requests, and forwards them to the daemon.

use crate::settings::{Hook, Settings};
use crate::verify::verify;
use anyhow::Context;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use crabtalk_client::{Client, Endpoint, Error, PublishEventMsg, RunNews, StreamMsg, stream_event};
use crabtalk_component::{Home, RequestIds, axum, serve_http};
use futures_util::StreamExt;
use ring::hmac;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Largest body; body and headers together fit into the payload of an event.
const MAX_BODY_BYTES: usize = 252 * 1024;

/// Maximum bytes of headers in a payload.
const MAX_HEADER_BYTES: usize = 4 * 1024;

type Answer = (StatusCode, &'static str);

struct Gateway {
    client: Client,
    hooks: BTreeMap<String, (hmac::Key, Hook)>,
    books: Mutex<Books>,
}

/// The state that requests change.
struct Books {
    seen: RequestIds,
    /// Requests in flight.
    under_way: HashSet<String>,
    /// The current minute, and the number of requests of each hook in it.
    minute: u64,
    taken: BTreeMap<String, u32>,
}

pub(crate) async fn serve(
    home: &Home,
    settings: Settings,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut hooks = BTreeMap::new();
    for (name, hook) in settings.hooks {
        let key = hook.key().with_context(|| format!("hook `{name}`"))?;
        hooks.insert(name, (key, hook));
    }
    let folder = home.state("webhook");
    home.make(&folder)?;
    let books = Books {
        seen: RequestIds::open(&folder.join("seen"), now())?,
        under_way: HashSet::new(),
        minute: 0,
        taken: BTreeMap::new(),
    };
    let client = Client::new(Endpoint::of_home(home.path()), "webhook");
    let client = client.with_patience(Duration::ZERO);
    let gateway = Gateway {
        client: client.clone(),
        hooks,
        books: Mutex::new(books),
    };
    let router = axum::Router::new()
        .route("/hook/{name}", post(take))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Arc::new(gateway));
    let listener = TcpListener::bind(settings.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", settings.listen))?;
    tokio::select! {
        served = serve_http(listener, router, stop) => served,
        // Lists the gateway as a connected component.
        never = client.stay() => match never {},
    }
}

/// Handles a request with a text body of a bounded size.
async fn take(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Answer {
    let answer = gateway.judge(&name, &headers, body).await;
    let (status, text) = answer.unwrap_or_else(|refused| refused);
    tracing::info!(hook = name, status = status.as_u16(), text, "request");
    (status, text)
}

impl Gateway {
    async fn judge(&self, name: &str, headers: &HeaderMap, body: String) -> Result<Answer, Answer> {
        let unknown = (StatusCode::NOT_FOUND, "unknown hook");
        let (key, hook) = self.hooks.get(name).ok_or(unknown)?;
        let unsigned = (
            StatusCode::UNAUTHORIZED,
            "the signature is missing or wrong, or the request is too old",
        );
        let signed = verify(key, hook.scheme, headers, body.as_bytes(), now()).ok_or(unsigned)?;
        let id = format!("{name}/{}", signed.id);
        self.begin(name, hook, &id)?;
        let handed = self
            .hand_on(name, hook, &id, told(hook, headers, &body))
            .await;
        let mut books = self.books();
        books.under_way.remove(&id);
        let done = handed.map_err(anyhow::Error::from);
        let text = done.and_then(|text| books.seen.remember(&id, signed.until).map(|()| text));
        text.map(|text| (StatusCode::ACCEPTED, text)).map_err(|e| {
            tracing::warn!(hook = name, error = %e, "request not accepted");
            (StatusCode::SERVICE_UNAVAILABLE, "try again later")
        })
    }

    /// Checks that a signed request is new and within the limits.
    fn begin(&self, name: &str, hook: &Hook, id: &str) -> Result<(), Answer> {
        let (mut books, now) = (self.books(), now());
        if books.seen.knows(id) {
            // The sender repeats it because the response was lost; success ends the repetition.
            return Err((StatusCode::OK, "accepted before"));
        }
        if books.minute != now / 60 {
            books.minute = now / 60;
            books.taken.clear();
        }
        let taken = books.taken.entry(name.to_owned()).or_default();
        *taken = taken.saturating_add(1);
        if *taken > hook.per_minute || books.seen.make_room(now).is_err() {
            return Err((StatusCode::TOO_MANY_REQUESTS, "too many requests"));
        }
        match books.under_way.insert(id.to_owned()) {
            true => Ok(()),
            false => Err((StatusCode::CONFLICT, "the same request is in flight")),
        }
    }

    /// Publishes the event or sends the message, and returns the response's text.
    async fn hand_on(
        &self,
        name: &str,
        hook: &Hook,
        id: &str,
        text: String,
    ) -> Result<&'static str, Error> {
        if let Some(source) = hook.event.clone() {
            let event = PublishEventMsg {
                source,
                payload: text,
            };
            let answer = self.client.call(event).await?;
            return Ok(match answer.matched {
                Some(0) => "accepted; no subscription matches",
                _ => "accepted",
            });
        }
        let sender = hook.sender.clone();
        // The run continues without a reader.
        let mut run = self.client.stream(StreamMsg {
            agent: hook.agent.clone().unwrap_or_default(),
            sender: Some(sender.unwrap_or_else(|| format!("webhook/{name}"))),
            content: text,
            request_id: Some(id.to_owned()),
            ..StreamMsg::default()
        });
        while let Some(news) = run.next().await {
            if let RunNews::Event(event) = news?
                && matches!(event.event, Some(stream_event::Event::Start(_)))
            {
                break;
            }
        }
        Ok("accepted")
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body, after one line for each configured header.
fn told(hook: &Hook, headers: &HeaderMap, body: &str) -> String {
    let mut told = String::new();
    for name in &hook.headers {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        let line = value.map(|value| format!("{name}: {value}\n"));
        if let Some(line) = line.filter(|line| told.len() + line.len() < MAX_HEADER_BYTES) {
            told.push_str(&line);
        }
    }
    if !told.is_empty() {
        told.push('\n');
    }
    told.push_str(body);
    told
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_headers_stand_above_the_body() {
        let hook = |text: &str| {
            let text = format!("secret_file = \"/s\"\nevent = \"ci\"\n{text}");
            toml::from_str::<Hook>(&text).expect("a hook")
        };
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-github-event", "push"),
            ("x-github-delivery", "72d3"),
            ("cookie", "secret"),
        ] {
            headers.insert(name, value.parse().expect("a value"));
        }
        let told = |hook: &Hook| told(hook, &headers, "{}");
        assert_eq!(
            told(&hook("")),
            "X-GitHub-Event: push\nX-GitHub-Delivery: 72d3\n\n{}"
        );
        assert_eq!(told(&hook("headers = []")), "{}");
        headers.insert(
            "x-github-event",
            "x".repeat(5_000).parse().expect("a value"),
        );
        let told = super::told(&hook(""), &headers, "{}");
        assert_eq!(told, "X-GitHub-Delivery: 72d3\n\n{}");
    }
}
