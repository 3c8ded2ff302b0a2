//! The streamable HTTP transport of the protocol, over the crate's HTTP port.
//!
//! Invariants: answers are bounded; redirects are not followed, since headers may be
//! credentials; refused connections and ended streams wake the server's task; a
//! token is sent only to its own address, and a refused token is renewed once.

use crate::answers::{self, Events, answered, bounded, read, too_much};
use crate::http::{Body, Http, HttpError, HttpRequest, HttpResponse};
use crate::oauth::{NoToken, Tokens};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum bytes of an error page in an error.
const MAX_PAGE: usize = 4 << 10;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The protocol's client over an HTTP port.
#[derive(Clone)]
pub(crate) struct Streamable {
    pub(crate) http: Arc<dyn Http>,
    /// Notified when the server may be gone.
    pub(crate) doubt: Arc<Notify>,
    /// The tokens of a login.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// Cancelled when the connection is dropped; otherwise the library's task would wait for the
    /// answer of a handshake forever.
    pub(crate) over: CancellationToken,
}

type Failure = StreamableHttpError<HttpError>;

impl Streamable {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, Failure> {
        let host = request.uri().authority().map(|authority| {
            let host = authority.as_str();
            HeaderValue::from_str(host.rsplit('@').next().unwrap_or(host))
        });
        if let Some(Ok(host)) = host {
            request.headers_mut().insert(HOST, host);
        }
        let Some(tokens) = &self.tokens else {
            return self.send_as_it_is(request).await;
        };
        let broken = |why: String| StreamableHttpError::Client(HttpError::Broken(why));
        let token = match tokens.bearer().await {
            Ok(token) => token,
            // The server answers with its challenge.
            Err(NoToken::Login) => None,
            Err(NoToken::Broken(why)) => return Err(broken(why)),
        };
        let with_token = authorized(request.clone(), token.as_deref());
        let answer = self.send_as_it_is(with_token).await?;
        let may_be_given = token.is_some() || tokens.is_alone();
        if answer.status != StatusCode::UNAUTHORIZED || !may_be_given {
            return Ok(self.noted(tokens, answer));
        }
        tokens.remember(challenge(&answer.headers));
        match tokens.instead_of(&token.unwrap_or_default()).await {
            Ok(token) => {
                let with_token = authorized(request, Some(&token));
                let answer = self.send_as_it_is(with_token).await?;
                Ok(self.noted(tokens, answer))
            }
            Err(NoToken::Login) => Ok(self.noted(tokens, answer)),
            Err(NoToken::Broken(why)) => Err(broken(why)),
        }
    }

    async fn send_as_it_is(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let over = self.over.clone();
        let answered = tokio::select! {
            biased;
            () = over.cancelled() => return Err(StreamableHttpError::TransportChannelClosed),
            answered = self.http.send(request) => answered,
        };
        let answered = answered.map(|answer| HttpResponse {
            body: answer.body.take_until(over.cancelled_owned()).boxed(),
            ..answer
        });
        if answered.is_err() {
            self.doubt.notify_one();
        }
        answered.map_err(StreamableHttpError::Client)
    }

    /// Records a challenge of the server.
    fn noted(&self, tokens: &Tokens, answer: HttpResponse) -> HttpResponse {
        match answer.status {
            StatusCode::UNAUTHORIZED => {
                tokens.refuse(challenge(&answer.headers));
                self.doubt.notify_one();
            }
            StatusCode::FORBIDDEN => tokens.remember(challenge(&answer.headers)),
            status if status.is_success() => tokens.take(),
            _ => {}
        }
        answer
    }

    /// The error for an answer with an error status.
    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: Body) -> Failure {
        let wants_more = challenge(headers).contains("insufficient_scope");
        match &self.tokens {
            Some(tokens) if status == StatusCode::FORBIDDEN && wants_more => {
                let why = tokens.wants_more();
                StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
            }
            _ => refusal(status, headers, body).await,
        }
    }

    /// Reads events; the end of the common stream may mean the end of the server.
    fn events(&self, body: Body, is_common: bool) -> Events {
        let doubt = is_common.then(|| Arc::clone(&self.doubt));
        let end = stream::poll_fn(move |_| {
            if let Some(doubt) = &doubt {
                doubt.notify_one();
            }
            std::task::Poll::Ready(None)
        });
        let bytes = bounded(body).chain(end);
        SseStream::from_bytes_stream(bytes.boxed()).boxed()
    }
}

fn request(
    method: Method,
    uri: &str,
    headers: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
    body: Bytes,
) -> Result<HttpRequest, Failure> {
    let broken = |why: String| StreamableHttpError::Client(HttpError::Broken(why));
    let uri: Uri = uri
        .parse()
        .map_err(|_| broken("the address is not a URL".into()))?;
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let all = request.headers_mut();
    all.extend(headers);
    all.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    if let Some(session) = session {
        let value = HeaderValue::from_str(session).map_err(|e| broken(e.to_string()))?;
        all.insert(SESSION, value);
    }
    Ok(request)
}

/// Adds a token to a request; it is marked as sensitive for logs.
fn authorized(mut request: HttpRequest, token: Option<&str>) -> HttpRequest {
    let value = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
    if let Some(Ok(mut value)) = value {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    request
}

/// The challenge of a refusal.
fn challenge(headers: &HeaderMap) -> &str {
    let value = headers.get(WWW_AUTHENTICATE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn kind(headers: &HeaderMap) -> &str {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// The error for an answer with an error status.
async fn refusal(status: StatusCode, headers: &HeaderMap, body: Body) -> Failure {
    if status == StatusCode::UNAUTHORIZED {
        let said = challenge(headers).to_owned();
        return StreamableHttpError::AuthRequired(AuthRequiredError::new(said));
    }
    if status.is_redirection() {
        let to = headers.get(http::header::LOCATION);
        let to = to.and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
        let why = format!(
            "it answered {status} and redirects to {to}: configure that address if it is correct"
        );
        return StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why));
    }
    let page = beginning(body).await;
    let why = format!("it answered {status}: {}", page.trim());
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

async fn beginning(mut body: Body) -> String {
    let mut page = Vec::new();
    while page.len() < MAX_PAGE
        && let Some(Ok(bytes)) = body.next().await
    {
        page.extend_from_slice(&bytes);
    }
    page.truncate(MAX_PAGE);
    String::from_utf8_lossy(&page).into_owned()
}

impl StreamableHttpClient for Streamable {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let session = session_id.as_deref();
        let mut request = request(Method::POST, &uri, headers, session, body.into())?;
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let HttpResponse {
            status,
            headers,
            body,
        } = self.send(request).await?;
        let asked = match message {
            ClientJsonRpcMessage::Request(asked) => Some(asked.id),
            ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Error(_) => None,
        };
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return Err(self.refusal(status, &headers, body).await);
        }
        let named = headers.get(SESSION).and_then(|value| value.to_str().ok());
        let named = named.map(str::to_owned);
        match (kind(&headers), asked) {
            (EVENTS, Some(id)) => {
                let events = answered(self.events(body, false), id);
                Ok(StreamableHttpPostResponse::Sse(events, named))
            }
            (EVENTS, None) => {
                let events = self.events(body, false);
                Ok(StreamableHttpPostResponse::Sse(events, named))
            }
            (_, None) => Ok(StreamableHttpPostResponse::Accepted),
            (JSON, Some(id)) => {
                let answer = match read(body).await {
                    Ok(text) => answers::message(&text).map_err(|why| {
                        StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
                    })?,
                    Err(HttpError::TooMuch(why)) => too_much(why, id),
                    Err(error) => return Err(StreamableHttpError::Client(error)),
                };
                Ok(StreamableHttpPostResponse::Json(answer, named))
            }
            (other, Some(_)) => Err(StreamableHttpError::UnexpectedContentType(Some(
                other.to_owned(),
            ))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let body = Bytes::new();
        let request = request(Method::DELETE, &uri, headers, Some(&session_id), body)?;
        // The server may refuse the request.
        self.send(request).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let session = session_id.as_deref();
        let mut request = request(Method::GET, &uri, headers, session, Bytes::new())?;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(Ok(id)) = last_event_id.map(|id| HeaderValue::from_str(&id)) {
            request.headers_mut().insert(LAST_EVENT, id);
        }
        let answer = self.send(request).await?;
        match answer.status {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND | StatusCode::NOT_ACCEPTABLE => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status if !status.is_success() => {
                Err(self.refusal(status, &answer.headers, answer.body).await)
            }
            _ if kind(&answer.headers) != EVENTS => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            _ => Ok(self.events(answer.body, true)),
        }
    }
}
