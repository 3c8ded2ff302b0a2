//! HTTP to a component on this machine.
//!
//! Invariants: each request opens a new connection, whose listener is checked to be a
//! program of the same user before the first byte is sent; no task outlives the tracker.

use crate::http::{Http, HttpError, HttpRequest, HttpResponse, chain};
use crate::owner::{self, Listener};
use crabtalk_domain::BoxFuture;
use futures_util::TryStreamExt;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::Ipv4Addr;
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

/// Components on the loopback.
pub(crate) struct Loopback {
    pub(crate) tasks: TaskTracker,
}

impl Http for Loopback {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        let tasks = self.tasks.clone();
        Box::pin(async move {
            let port = request.uri().port_u16().unwrap_or(80);
            let stream = connect(port).await?;
            let broken = |error: hyper::Error| HttpError::Broken(chain(&error));
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(broken)?;
            tasks.spawn(async move {
                // The reader of the answer gets the connection's errors.
                let _ = connection.await;
            });
            let (mut parts, body) = request.into_parts();
            let path = parts
                .uri
                .path_and_query()
                .map(|path| path.as_str().to_owned());
            parts.uri = path.unwrap_or_default().parse().unwrap_or_default();
            let request = http::Request::from_parts(parts, Full::new(body));
            let answer = sender.send_request(request).await.map_err(broken)?;
            let (parts, incoming) = answer.into_parts();
            Ok(HttpResponse {
                status: parts.status,
                headers: parts.headers,
                body: Box::pin(incoming.into_data_stream().map_err(broken)),
            })
        })
    }
}

/// Connects to a component and checks the owner of its port.
pub(crate) async fn connect(port: u16) -> Result<TcpStream, HttpError> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|e| HttpError::Refused(e.to_string()))?;
    let _ = stream.set_nodelay(true);
    let asked = tokio::task::spawn_blocking(move || owner::of(port)).await;
    match asked.unwrap_or(Listener::Unknown) {
        Listener::Ours | Listener::Unknown => Ok(stream),
        Listener::Nobody => Err(HttpError::Refused("nothing listens on the port".into())),
        Listener::Of { uid } => {
            tracing::warn!(target: "security", port, uid, "a program of another user listens on a component's port");
            Err(HttpError::Foreign(format!(
                "a program of another user (uid {uid}) listens on port {port}: nothing was sent to it"
            )))
        }
    }
}
