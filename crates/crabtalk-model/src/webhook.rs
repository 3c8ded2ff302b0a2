//! Tells an address of the owner's something, as JSON.
//!
//! Here because what calls are made with is: proxies, certificates, time-outs.

use crate::Proxies;
use crate::http::{Client, Tls};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Uri};
use http_body_util::Full;
use std::time::Duration;

/// Posts a value. An answer's body is not read.
///
/// # Errors
/// What went wrong, without the address, which may be a secret.
pub async fn post_json(
    url: &str,
    value: &serde_json::Value,
    proxies: Proxies,
    timeout: Duration,
) -> Result<(), String> {
    let address: Uri = url.parse().map_err(|_| "the address cannot be read")?;
    let host = address.authority().ok_or("the address has no host")?;
    let host = HeaderValue::from_str(host.as_str().rsplit('@').next().unwrap_or_default());
    let mut request = http::Request::new(Full::from(Bytes::from(value.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address;
    let headers = request.headers_mut();
    headers.insert(HOST, host.map_err(|_| "the address has a strange host")?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let client = Client::new(proxies, Tls::default());
    let answered = client.call(timeout, request).await;
    let status = answered.map_err(|failure| failure.to_string())?.status;
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("it answered {status}"))
    }
}
