//! Fetches one page, with its redirects and limits.

use crate::connect::{Connector, Resolve, System};
use crate::error::Error;
use crate::settings::Settings;
use crate::{charset, html};
use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use url::Url;

/// The `User-Agent` header.
const USER_AGENT: &str = concat!("crabtalk-fetch/", env!("CARGO_PKG_VERSION"));

/// Longest address.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Maximum bytes of response headers.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Bytes read of an error page, and characters of it in the error.
const MAX_COMPLAINT_BYTES: usize = 16 * 1024;
const MAX_COMPLAINT_CHARS: usize = 300;

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its address after redirects.
    pub url: String,
    /// Its type, such as `text/html`.
    pub content_type: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
    /// Whether the page was longer than the limit.
    pub cut: bool,
}

/// Fetches pages.
pub struct Fetcher {
    settings: Settings,
    connector: Connector,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    /// A fetcher with the system's resolver.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with_resolver(settings, System)
    }

    /// A fetcher with another resolver.
    #[must_use]
    pub fn with_resolver(settings: Settings, resolve: impl Resolve) -> Self {
        let connector = Connector::new(resolve);
        Self {
            settings,
            connector,
        }
    }

    /// The limits.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Fetches a page as text; with `raw`, HTML is not converted.
    pub async fn fetch(&self, url: &str, raw: bool) -> Result<Page, Error> {
        let first = checked(url)?;
        let within = self.settings.timeout();
        match tokio::time::timeout(within, self.follow(first, raw)).await {
            Ok(done) => done,
            Err(_) => Err(Error::Timeout {
                url: url.to_owned(),
                secs: within.as_secs(),
            }),
        }
    }

    async fn follow(&self, mut url: Url, raw: bool) -> Result<Page, Error> {
        for _ in 0..=self.settings.max_redirects {
            let mut exchange = Exchange::begin(&self.connector, &self.settings, &url).await?;
            if exchange.head.status.is_redirection() {
                url = next(&url, &exchange.head)?;
                continue;
            }
            return self.read(&url, &mut exchange, raw).await;
        }
        Err(Error::Redirects {
            url: url.to_string(),
            most: self.settings.max_redirects,
        })
    }

    async fn read(&self, url: &Url, exchange: &mut Exchange, raw: bool) -> Result<Page, Error> {
        let head = &exchange.head;
        let status = head.status;
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = header(CONTENT_TYPE).unwrap_or("text/plain").to_owned();
        let essence = essence(&content_type);
        let not_text = |content_type: &str| Error::NotText {
            url: url.to_string(),
            content_type: content_type.to_owned(),
        };
        match header(CONTENT_ENCODING).map(str::trim) {
            None | Some("" | "identity") => {}
            // The request accepts only `identity`.
            Some(packed) => return Err(not_text(packed)),
        }
        if !status.is_success() {
            let (bytes, cut) = exchange.body(url, MAX_COMPLAINT_BYTES).await?;
            let text = charset::decode(&bytes, &content_type, cut);
            return Err(Error::Status {
                url: url.to_string(),
                status,
                text: complaint(&text, is_html(&essence), url),
            });
        }
        if !is_text(&essence) {
            return Err(not_text(&essence));
        }
        let (bytes, cut) = exchange.body(url, self.settings.max_bytes).await?;
        let decoded = charset::decode(&bytes, &content_type, cut);
        let (title, text) = match is_html(&essence) && !raw {
            true => html::to_markdown(&decoded, url),
            false => (None, decoded),
        };
        Ok(Page {
            url: url.to_string(),
            content_type: essence,
            title,
            text: text.chars().filter(|c| is_shown(*c)).collect(),
            cut,
        })
    }
}

/// A request and its response, on a new connection.
struct Exchange {
    head: http::response::Parts,
    body: Incoming,
    /// Drives the connection; aborted when this is dropped.
    _connection: JoinSet<()>,
}

impl Exchange {
    async fn begin(connector: &Connector, settings: &Settings, url: &Url) -> Result<Self, Error> {
        let stream = connector.open(url, settings).await?;
        let failed = |source| broke_off(url, source);
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The response has the error.
            let _ = connection.await;
        });
        let response = sender.send_request(request(url)?).await.map_err(failed)?;
        let (head, body) = response.into_parts();
        Ok(Self {
            head,
            body,
            _connection: driver,
        })
    }

    /// The body up to a limit, and whether it is longer.
    async fn body(&mut self, url: &Url, most: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut bytes = Vec::new();
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|source| broke_off(url, source))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let room = most - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                return Ok((bytes, true));
            }
        }
        Ok((bytes, false))
    }
}

fn broke_off(url: &Url, source: hyper::Error) -> Error {
    Error::Http {
        host: url.host_str().unwrap_or_default().to_owned(),
        source,
    }
}

/// Parses an address and checks that it may be fetched.
fn checked(text: &str) -> Result<Url, Error> {
    let failed = |why: &str| Error::Url {
        url: text.chars().take(200).collect(),
        why: why.to_owned(),
    };
    if text.len() > MAX_URL_BYTES {
        return Err(failed("it is too long"));
    }
    let mut url = Url::parse(text.trim()).map_err(|e| failed(&e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(failed("only http and https are supported"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(failed("it contains a user name or a password; remove them"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(failed("it has no host"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The target of a redirect.
fn next(from: &Url, head: &http::response::Parts) -> Result<Url, Error> {
    let target = head.headers.get(LOCATION).map(|to| to.as_bytes());
    let target = target.and_then(|to| std::str::from_utf8(to).ok());
    let Some(target) = target else {
        return Err(Error::Status {
            url: from.to_string(),
            status: head.status,
            text: "the redirect has no valid target".to_owned(),
        });
    };
    let joined = from.join(target).map_err(|e| Error::Url {
        url: target.chars().take(200).collect(),
        why: e.to_string(),
    })?;
    checked(joined.as_str())
}

fn request(url: &Url) -> Result<Request<Empty<Bytes>>, Error> {
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    Request::get(&url[url::Position::BeforePath..])
        .header("host", host)
        .header("user-agent", USER_AGENT)
        .header(
            "accept",
            "text/html, text/markdown, text/plain, application/json, */*;q=0.5",
        )
        .header("accept-encoding", "identity")
        .body(Empty::new())
        .map_err(|e| Error::Url {
            url: url.to_string(),
            why: e.to_string(),
        })
}

/// A content type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn is_html(essence: &str) -> bool {
    matches!(essence, "text/html" | "application/xhtml+xml")
}

/// Whether content of this type is text.
fn is_text(essence: &str) -> bool {
    let (kind, name) = essence.split_once('/').unwrap_or((essence, ""));
    let known = [
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "yaml",
        "x-yaml",
        "toml",
        "sql",
        "graphql",
        "x-sh",
        "x-ndjson",
        "jsonl",
        "rtf",
    ];
    let suffix = name.rsplit_once('+').map(|(_, suffix)| suffix);
    kind == "text" || known.contains(&name) || suffix.is_some_and(|s| known.contains(&s))
}

/// The beginning of an error page, in one line.
fn complaint(text: &str, is_html: bool, url: &Url) -> String {
    let text = match is_html {
        true => html::to_markdown(text, url).1,
        false => text.to_owned(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|c| is_shown(*c))
        .take(MAX_COMPLAINT_CHARS)
        .collect()
}

/// Whether a character is text and does not control a terminal.
fn is_shown(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}
