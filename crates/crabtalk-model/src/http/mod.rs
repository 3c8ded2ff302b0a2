//! One HTTP/1.1 call at a time over kept connections.
//! Invariants: there is no task behind a connection, whoever reads an answer
//! drives it, so that dropping an unfinished answer closes it at once; what is
//! kept idle is bounded in number and age.

mod eyeballs;
mod pool;
mod socket;
mod tls;

pub(crate) use pool::Pool;
pub(crate) use tls::Tls;

use crate::base_url::Endpoint;
use crate::body::Body as RequestBody;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use pool::Idle;
use socket::Socket;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

type Connection = http1::Connection<TokioIo<Socket>, RequestBody>;

/// Why a call got no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing listens there, or the name does not resolve.
    Connect(std::io::Error),
    /// The server could not prove who it is, or we cannot check it.
    Tls(String),
    /// No answer began in time.
    Timeout(Duration),
    /// The connection broke or what came is not HTTP.
    Broken(String),
}

/// The beginning of an answer.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// A connection that its user drives.
struct Link {
    sender: SendRequest<RequestBody>,
    /// `None` once it is closed.
    connection: Option<Connection>,
}

impl Link {
    async fn open(endpoint: &Endpoint, tls: &Tls) -> Result<Self, Failure> {
        let socket = Socket::connect(endpoint, tls).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        Ok(Self {
            sender,
            connection: Some(connection),
        })
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.connection = None;
        }
    }

    async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<http::Response<Incoming>, Failure> {
        let mut response = pin!(self.sender.send_request(request));
        let connection = &mut self.connection;
        poll_fn(|cx| {
            if let Some(driven) = connection
                && Pin::new(driven).poll(cx).is_ready()
            {
                *connection = None;
            }
            response.as_mut().poll(cx)
        })
        .await
        .map_err(|error| Failure::Broken(chain(&error)))
    }
}

/// Sends a request over a kept connection, or a new one where there is none.
/// A kept connection may have died unnoticed: then nothing was answered, and a
/// new one is tried.
pub(crate) async fn call(
    pool: &Arc<Pool>,
    endpoint: &Endpoint,
    tls: &Tls,
    timeout: Duration,
    request: &Request<RequestBody>,
) -> Result<Response, Failure> {
    let answered = async {
        if let Some(mut link) = pool.take().await
            && let Ok(response) = link.send(request.clone()).await
        {
            return Ok((link, response));
        }
        let mut link = Link::open(endpoint, tls).await?;
        let response = link.send(request.clone()).await?;
        Ok((link, response))
    };
    let (link, response) = tokio::time::timeout(timeout, answered)
        .await
        .map_err(|_| Failure::Timeout(timeout))??;
    let (parts, incoming) = response.into_parts();
    let body = Body {
        link: Some(link),
        incoming,
        pool: pool.clone(),
    };
    Ok(Response {
        status: parts.status,
        headers: parts.headers,
        body,
    })
}

/// The rest of an answer. Dropping it closes the connection.
pub(crate) struct Body {
    link: Option<Link>,
    incoming: Incoming,
    pool: Arc<Pool>,
}

impl Body {
    /// The next bytes, `None` at the proper end.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        if let Poll::Ready(item) = poll_frame(&mut self.incoming, cx) {
            return Poll::Ready(item);
        }
        if let Some(link) = &mut self.link {
            link.drive(cx);
        }
        poll_frame(&mut self.incoming, cx)
    }

    /// Reads how it begins, `limit` bytes at most. What follows is not waited
    /// for: the connection closes.
    pub(crate) async fn beginning(mut self, limit: usize) -> Vec<u8> {
        let mut page = Vec::new();
        while page.len() < limit {
            match poll_fn(|cx| self.poll_data(cx)).await {
                Some(Ok(bytes)) => page.extend_from_slice(&bytes),
                Some(Err(_)) => return page,
                None => {
                    self.keep();
                    return page;
                }
            }
        }
        page.truncate(limit);
        page
    }

    /// Reads all of it; `None` when it is longer than `limit`.
    pub(crate) async fn collect(mut self, limit: usize) -> Result<Option<Vec<u8>>, String> {
        let mut whole = Vec::new();
        while let Some(bytes) = poll_fn(|cx| self.poll_data(cx)).await {
            whole.extend_from_slice(&bytes?);
            if whole.len() > limit {
                return Ok(None);
            }
        }
        self.keep();
        Ok(Some(whole))
    }

    /// Gives the connection back once everything that matters was read; what
    /// may still come, a chunk of length zero as a rule, is read before the
    /// next use.
    pub(crate) fn keep(mut self) {
        if let Some(link) = self.link.take() {
            self.pool.clone().put(Idle::new(link, self.incoming));
        }
    }
}

fn poll_frame(
    incoming: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, String>>> {
    loop {
        return match Pin::new(&mut *incoming).poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(chain(&error)))),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => Poll::Ready(Some(Ok(data))),
                // Trailers say nothing about an answer.
                Err(_) => continue,
            },
        };
    }
}

/// An error with its causes, which hyper keeps apart.
fn chain(error: &dyn std::error::Error) -> String {
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
