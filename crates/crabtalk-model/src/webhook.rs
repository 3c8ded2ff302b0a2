//! Posts JSON to an address that the owner configured.
//!
//! It is in this crate for the proxies, certificates and timeouts of calls.

use crate::Proxies;
use crate::http::{Client, Tls};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Uri};
use http_body_util::Full;
use std::time::Duration;

/// Posts a value and ignores the body of the answer.
///
/// # Errors
/// The failure, without the address, which may contain a secret.
pub async fn post_json(
    url: &str,
    value: &serde_json::Value,
    proxies: Proxies,
    timeout: Duration,
) -> Result<(), String> {
    let address: Uri = url.parse().map_err(|_| "the address is not a URL")?;
    let host = address.authority().ok_or("the address has no host")?;
    let host = HeaderValue::from_str(host.as_str().rsplit('@').next().unwrap_or_default());
    let mut request = http::Request::new(Full::from(Bytes::from(value.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address;
    let headers = request.headers_mut();
    headers.insert(HOST, host.map_err(|_| "the address has an invalid host")?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let client = Client::new(proxies, Tls::default());
    let answered = client.call(timeout, request).await;
    let status = answered.map_err(|failure| failure.to_string())?.status;
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("the server answered {status}"))
    }
}
