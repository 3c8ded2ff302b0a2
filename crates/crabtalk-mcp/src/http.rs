//! The port to HTTP.
//!
//! Invariant: an answer is read by whoever asked, up to a limit of their own.

use bytes::Bytes;
use crabtalk_domain::BoxFuture;
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use std::pin::Pin;

/// A request, whole.
pub type HttpRequest = http::Request<Bytes>;

pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>;

/// An answer, whose body is still to be read. Dropping it closes its connection.
pub struct HttpResponse {
    /// How it went.
    pub status: StatusCode,
    /// What it says of itself.
    pub headers: HeaderMap,
    /// What follows.
    pub body: Body,
}

/// Why there was no answer, or none to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// Nobody listens there.
    #[error("nobody listens there: {0}")]
    Refused(String),
    /// Another user's program listens there.
    #[error("{0}")]
    Foreign(String),
    /// The answer is more than is read.
    #[error("{0}")]
    TooMuch(String),
    /// Something else went wrong.
    #[error("{0}")]
    Broken(String),
}

/// Calls addresses.
pub trait Http: Send + Sync {
    /// Sends a request and waits for the beginning of its answer.
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>>;
}

/// An error with its causes.
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
