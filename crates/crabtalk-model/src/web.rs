//! Requests to other servers than models, with the same proxies, certificates and timeouts.

use crate::Proxies;
use crate::http::{Client, Failure, Tls};
use bytes::Bytes;
use crabtalk_domain::BoxStream;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::Full;
use std::sync::OnceLock;
use std::time::Duration;

/// Timeout until the answer begins.
const BEGIN_WITHIN: Duration = Duration::from_secs(60);

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The connection failed.
    #[error("{0}")]
    Unreachable(String),
    /// Any other failure.
    #[error("{0}")]
    Broken(String),
}

/// The rest of an answer. Dropping it closes the connection.
pub type WebBody = BoxStream<'static, Result<Bytes, String>>;

/// An HTTP client. It is set up at the first call.
#[derive(Default)]
pub struct Web(OnceLock<Client>);

impl Web {
    /// Sends a request with an absolute address and waits for the beginning
    /// of its answer. Does not follow redirects.
    ///
    /// # Errors
    /// The failure, without the address, which may contain a secret.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<WebBody>, WebError> {
        let client = self.0.get_or_init(|| {
            let proxies = Proxies::from_variables(|name| std::env::var(name).ok());
            Client::new(proxies, Tls::default())
        });
        let answer = client.call(BEGIN_WITHIN, request.map(Full::new)).await;
        let answer = answer.map_err(|failure| match failure {
            Failure::Connect(why) => WebError::Unreachable(why),
            Failure::Proxy { .. } | Failure::Tls(_) | Failure::Timeout(_) | Failure::Broken(_) => {
                WebError::Broken(failure.to_string())
            }
        })?;
        let mut body = answer.body;
        let body = stream::poll_fn(move |cx| body.poll_data(cx));
        let mut response = Response::new(Box::pin(body) as WebBody);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
