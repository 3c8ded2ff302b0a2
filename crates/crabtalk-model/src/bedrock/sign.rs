//! Signs requests with AWS Signature Version 4.
//! Invariant: the secret key is never sent.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use std::fmt::Write as _;

const SERVICE: &str = "bedrock";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The region if the host name does not contain one.
const DEFAULT_REGION: &str = "us-east-1";

/// An access key: `id:secret` or `id:secret:session token`.
pub(crate) struct Credentials {
    id: String,
    secret: String,
    token: Option<String>,
}

impl Credentials {
    /// Reads a configured key; `None` for a bearer key.
    pub(crate) fn read(key: &str) -> Option<Self> {
        let mut parts = key.splitn(3, ':').map(str::to_owned);
        let (id, secret) = (parts.next()?, parts.next()?);
        let token = parts.next().filter(|token| !token.is_empty());
        let is_whole = !id.is_empty() && !secret.is_empty();
        is_whole.then_some(Self { id, secret, token })
    }

    /// The parts that must not be shown.
    pub(crate) fn secrets(self) -> impl Iterator<Item = String> {
        [Some(self.secret), self.token].into_iter().flatten()
    }

    /// The headers that sign a POST of `body` to an escaped path on a host.
    pub(crate) fn sign(
        &self,
        host: &str,
        path: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let region = region(host);
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = &time[..8];
        let mut canonical = vec![
            ("content-type", "application/json"),
            ("host", host),
            ("x-amz-date", &time),
        ];
        if let Some(token) = &self.token {
            canonical.push(("x-amz-security-token", token));
        }
        let names: Vec<&str> = canonical.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let mut request = format!("POST\n{}\n\n", escape_path(path));
        for (name, value) in &canonical {
            writeln!(request, "{name}:{value}").expect("a String takes it");
        }
        let hash = hex(digest(&SHA256, body).as_ref());
        write!(request, "\n{names}\n{hash}").expect("a String takes it");
        let scope = format!("{day}/{region}/{SERVICE}/aws4_request");
        let hash = hex(digest(&SHA256, request.as_bytes()).as_ref());
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{hash}");
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in [day, region, SERVICE, "aws4_request"] {
            key = keyed(&key, part);
        }
        let signature = hex(&keyed(&key, &text));
        let id = &self.id;
        let authorization = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        let mut headers = vec![("x-amz-date", time), ("authorization", authorization)];
        headers.extend(
            self.token
                .clone()
                .map(|token| ("x-amz-security-token", token)),
        );
        headers
    }
}

/// The region in a host name: `bedrock-runtime.eu-west-1.amazonaws.com`.
pub(super) fn region(host: &str) -> &str {
    host.split('.')
        .skip_while(|label| !label.starts_with("bedrock-runtime"))
        .nth(1)
        .unwrap_or(DEFAULT_REGION)
}

/// Escapes all but the unreserved characters of a path segment.
pub(crate) fn escape(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes it");
        }
    }
    out
}

/// Escapes a path once more, as the signature requires.
fn escape_path(path: &str) -> String {
    path.split('/').map(escape).collect::<Vec<_>>().join("/")
}

fn keyed(key: &[u8], data: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), data.as_bytes())
        .as_ref()
        .to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a String takes it");
        out
    })
}
