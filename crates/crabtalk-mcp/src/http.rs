//! The HTTP port of this crate.
//!
//! Invariant: answers are streamed; the reader sets the limit.

use bytes::Bytes;
use crabtalk_domain::BoxFuture;
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use std::pin::Pin;

/// A complete request.
pub type HttpRequest = http::Request<Bytes>;

pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>;

/// An answer with an unread body. Dropping it closes its connection.
pub struct HttpResponse {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

/// The failure of a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// The connection was refused.
    #[error("connection refused: {0}")]
    Refused(String),
    /// Another user's program listens on the port.
    #[error("{0}")]
    Foreign(String),
    /// The answer is too long.
    #[error("{0}")]
    TooMuch(String),
    /// The request failed for another reason.
    #[error("{0}")]
    Broken(String),
}

/// Sends HTTP requests.
pub trait Http: Send + Sync {
    /// Sends a request and waits for the headers of its answer.
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>>;
}

/// Formats an error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
