//! Verifies the signature and time of a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crabtalk_component::axum::http::HeaderMap;
use ring::{digest, hmac};
use serde::Deserialize;

/// A signature scheme.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scheme {
    /// The scheme of standardwebhooks.com, which signs id, time and body.
    #[default]
    Standard,
    /// The scheme of GitHub and many others, which signs the body.
    Github,
}

/// Maximum difference between a request's time and the local time, in seconds.
pub(crate) const TOLERANCE_SECS: u64 = 300;

/// How long a request without a time is remembered, in seconds; its sender may repeat it for days.
const REMEMBERED_SECS: u64 = 7 * 24 * 3600;

/// A request with a valid signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    /// An id that is derived only from signed content.
    pub(crate) id: String,
    /// Until when it must be remembered; later requests with its time are refused as too old.
    pub(crate) until: u64,
}

/// Verifies a request; `None` if its signature or time is invalid.
pub(crate) fn verify(
    key: &hmac::Key,
    scheme: Scheme,
    headers: &HeaderMap,
    body: &[u8],
    now: u64,
) -> Option<Signed> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    match scheme {
        Scheme::Standard => {
            let (id, time) = (header("webhook-id")?, header("webhook-timestamp")?);
            let at: u64 = time.parse().ok().filter(|_| time.len() < 12)?;
            let signed = [id.as_bytes(), b".", time.as_bytes(), b".", body].concat();
            let mut given = header("webhook-signature")?.split(' ');
            // There are several signatures while a secret is replaced. The library compares in
            // constant time.
            let fits = given.any(|one| {
                let tag = one.strip_prefix("v1,").and_then(from_base64);
                tag.is_some_and(|tag| hmac::verify(key, &signed, &tag).is_ok())
            });
            let id = hex(digest::digest(&digest::SHA256, id.as_bytes()).as_ref());
            let until = at + TOLERANCE_SECS;
            (fits && now.abs_diff(at) <= TOLERANCE_SECS).then_some(Signed { id, until })
        }
        Scheme::Github => {
            let tag = header("x-hub-signature-256")?.strip_prefix("sha256=")?;
            let tag = from_hex(tag)?;
            // The delivery id is not signed, so the signature serves as the id.
            hmac::verify(key, body, &tag).ok()?;
            let until = now + REMEMBERED_SECS;
            Some(Signed {
                id: hex(&tag),
                until,
            })
        }
    }
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.is_ascii() && text.len().is_multiple_of(2);
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    digits.then(|| (0..text.len()).step_by(2).map(pair).collect())?
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
