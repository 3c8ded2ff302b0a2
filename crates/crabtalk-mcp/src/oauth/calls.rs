//! HTTP requests of the OAuth library.
//!
//! Invariants: answers are bounded in size and time; redirects are followed only for reads
//! on the same host; requests without TLS go only to this machine and to
//! the server itself. A host named by the server may resolve to a private address;
//! TLS ensures that it has the certificate of the name.

use crate::http::{Http, HttpResponse};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Method, Uri};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use std::sync::Arc;
use std::time::Duration;

/// Longest answer.
const MAX_BODY: usize = 1 << 20;

/// Most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// Timeout of a request.
const WITHIN: Duration = Duration::from_secs(30);

/// The library's HTTP client.
pub(super) struct Calls {
    http: Arc<dyn Http>,
    /// The address of the server.
    server: Option<Uri>,
}

type Body = http::Response<Vec<u8>>;

impl OAuthHttpClient for Calls {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let within = request.timeout.unwrap_or(WITHIN).min(WITHIN);
        let (parts, body) = request.request.into_parts();
        let request = http::Request::from_parts(parts, Bytes::from(body));
        Box::pin(async move {
            let answered = tokio::time::timeout(within, self.answer(request, follows)).await;
            answered.map_err(|_| error(&format!("no answer within {} s", within.as_secs())))?
        })
    }
}

impl Calls {
    /// Creates a client for the server at the configured address.
    pub(super) fn new(server: &str, http: Arc<dyn Http>) -> Self {
        Self {
            http,
            server: server.parse().ok(),
        }
    }

    /// Refuses addresses at which another machine on the network could answer.
    fn check(&self, to: &Uri) -> Result<(), OAuthHttpClientError> {
        let place = |uri: &Uri| (uri.scheme().cloned(), uri.authority().cloned());
        let is_server = self
            .server
            .as_ref()
            .is_some_and(|own| place(own) == place(to));
        if is_server {
            return Ok(());
        }
        let checked = super::check_protected(&to.to_string());
        checked.map_err(|why| error(&why))
    }

    pub(super) async fn answer(
        &self,
        mut request: http::Request<Bytes>,
        follows: bool,
    ) -> Result<Body, OAuthHttpClientError> {
        self.check(request.uri())?;
        for _ in 0..=MAX_REDIRECTS {
            if let Some(authority) = request.uri().authority() {
                let host = authority.as_str().rsplit('@').next().unwrap_or_default();
                let host = HeaderValue::from_str(host)?;
                request.headers_mut().insert(HOST, host);
            }
            let answer = self.http.send(request.clone()).await?;
            let reads = follows && matches!(*request.method(), Method::GET | Method::HEAD);
            match elsewhere(request.uri(), &answer).filter(|_| reads) {
                Some(next) => *request.uri_mut() = next,
                None => return whole(answer).await,
            }
        }
        Err(error("too many redirects"))
    }
}

/// The target of a redirect on the same host.
fn elsewhere(from: &Uri, answer: &HttpResponse) -> Option<Uri> {
    if !answer.status.is_redirection() {
        return None;
    }
    let to = answer.headers.get(LOCATION)?.to_str().ok()?;
    let to: Uri = to.parse().ok()?;
    let mut parts = to.into_parts();
    let (scheme, authority) = (from.scheme().cloned(), from.authority().cloned());
    if parts.authority.is_none() {
        (parts.scheme, parts.authority) = (scheme, authority);
    } else if (&parts.scheme, &parts.authority) != (&scheme, &authority) {
        return None;
    }
    Uri::from_parts(parts).ok()
}

async fn whole(answer: HttpResponse) -> Result<Body, OAuthHttpClientError> {
    let HttpResponse {
        status,
        headers,
        mut body,
    } = answer;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(error(&format!("its answer has more than {MAX_BODY} bytes")));
        }
        bytes.extend_from_slice(&piece);
    }
    let mut whole = http::Response::new(bytes);
    *whole.status_mut() = status;
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        whole.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    for (name, value) in &headers {
        if name != CONTENT_TYPE {
            whole.headers_mut().append(name, value.clone());
        }
    }
    Ok(whole)
}

fn error(why: &str) -> OAuthHttpClientError {
    why.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{HttpError, HttpRequest};
    use crabtalk_domain::BoxFuture;
    use std::sync::Mutex;

    /// Records requests and answers each of them.
    #[derive(Default)]
    struct Anybody(Mutex<Vec<String>>);

    impl Http for Anybody {
        fn send(
            &self,
            request: HttpRequest,
        ) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
            self.0
                .lock()
                .expect("whole")
                .push(request.uri().to_string());
            Box::pin(std::future::ready(Ok(HttpResponse {
                status: http::StatusCode::OK,
                headers: http::HeaderMap::new(),
                body: Box::pin(futures_util::stream::empty()),
            })))
        }
    }

    #[tokio::test]
    async fn requests_without_tls_go_to_the_server_only() {
        let http = Arc::<Anybody>::default();
        for (server, to, is_asked) in [
            ("https://a.example/mcp", "https://login.example/token", true),
            ("https://a.example/mcp", "http://login.example/token", false),
            (
                "https://a.example/mcp",
                "http://169.254.169.254/token",
                false,
            ),
            ("https://a.example/mcp", "http://a.example/token", false),
            ("http://a.example/mcp", "http://a.example/token", true),
            ("http://a.example/mcp", "http://a.example:81/token", false),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token", true),
        ] {
            let calls = Calls::new(server, http.clone());
            let mut request = http::Request::new(Bytes::new());
            *request.uri_mut() = to.parse().expect("an address");
            let answered = calls.answer(request, true).await;
            let asked = std::mem::take(&mut *http.0.lock().expect("whole"));
            assert_eq!(answered.is_ok(), is_asked, "{server} names {to}");
            assert_eq!(asked.len(), usize::from(is_asked), "{asked:?}");
        }
    }
}
