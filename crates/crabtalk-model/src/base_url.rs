//! Where a provider's requests go (MODEL-2).
//! Invariant: whatever address of a provider a person copies from its
//! documentation leads to the same endpoint.

use crate::config::Kind;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// Tails of full endpoint addresses that people paste.
const ENDPOINTS: [&str; 4] = ["/chat/completions", "/messages", "/completions", "/models"];

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} is not a base_url: {reason}; it looks like https://host/v1")]
pub struct Error {
    /// The address, without anything secret.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Where to connect and what to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The `Host` header.
    pub(crate) authority: String,
    /// The request target of the streaming call.
    pub(crate) target: String,
}

impl Endpoint {
    /// The endpoint of a kind at an address, its own if none is given.
    pub(crate) fn new(kind: Kind, base_url: Option<&str>) -> Result<Self, Error> {
        let default = match kind {
            Kind::OpenAi => "https://api.openai.com/v1",
            Kind::Anthropic => "https://api.anthropic.com/v1",
            Kind::Ollama => "http://127.0.0.1:11434/v1",
            Kind::Azure | Kind::Offline => "",
        };
        let url = base_url.unwrap_or(default).trim();
        let wrong = |reason: &str| Error {
            url: without_secrets(url),
            reason: reason.to_owned(),
        };
        if url.is_empty() {
            return Err(wrong(
                "it is empty, and this kind has no address of its own",
            ));
        }
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole.parse().map_err(|_| wrong("it does not parse"))?;
        let parts = uri.into_parts();
        let tls = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTPS => true,
            Some(scheme) if scheme == Scheme::HTTP => false,
            Some(_) | None => return Err(wrong("only http and https are spoken")),
        };
        let authority = parts.authority.ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "a password in it would be sent in clear; use api_key or headers",
            ));
        }
        let target = target(kind, parts.path_and_query.as_ref());
        Ok(Self {
            tls,
            ..Self::at(&authority, tls, target)
        })
    }

    fn at(authority: &Authority, tls: bool, target: String) -> Self {
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Self {
            tls,
            host,
            port,
            authority: authority.as_str().to_owned(),
            target,
        }
    }

    /// A plain address on loopback, for probes.
    pub(crate) fn loopback(port: u16, target: &str) -> Self {
        Self {
            tls: false,
            host: "127.0.0.1".into(),
            port,
            authority: format!("127.0.0.1:{port}"),
            target: target.to_owned(),
        }
    }

    /// The endpoint as errors name it.
    pub(crate) fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let path = self.target.split('?').next().unwrap_or_default();
        format!("{scheme}://{}{path}", self.authority)
    }
}

fn target(kind: Kind, given: Option<&PathAndQuery>) -> String {
    let mut path = given.map_or("", PathAndQuery::path).trim_end_matches('/');
    for endpoint in ENDPOINTS {
        if let Some(stripped) = path.strip_suffix(endpoint) {
            path = stripped.trim_end_matches('/');
            break;
        }
    }
    // Ollama's own API lives beside the compatible one.
    if kind == Kind::Ollama {
        path = path.strip_suffix("/api").unwrap_or(path);
    }
    let base = match (path, kind) {
        ("", Kind::Azure) => "/openai/v1",
        ("", _) => "/v1",
        (path, _) => path,
    };
    let endpoint = if kind == Kind::Anthropic {
        "/messages"
    } else {
        "/chat/completions"
    };
    match given.and_then(PathAndQuery::query) {
        Some(query) => format!("{base}{endpoint}?{query}"),
        None => format!("{base}{endpoint}"),
    }
}

/// An address as logs and errors may show it: no user, password or query.
pub(crate) fn without_secrets(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = bare
        .split_once("://")
        .map_or(("", bare), |(s, rest)| (s, rest));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() {
        format!("{host}{path}")
    } else {
        format!("{scheme}://{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_provider_leads_to_its_endpoint() {
        let openai = "https://api.openai.com/v1/chat/completions";
        let anthropic = "https://api.anthropic.com/v1/messages";
        for (kind, given, want) in [
            (Kind::OpenAi, None, openai),
            (Kind::OpenAi, Some("https://api.openai.com"), openai),
            (Kind::OpenAi, Some("https://api.openai.com/"), openai),
            (Kind::OpenAi, Some("https://api.openai.com/v1"), openai),
            (Kind::OpenAi, Some("https://api.openai.com/v1//"), openai),
            (
                Kind::OpenAi,
                Some("https://api.openai.com/v1/chat/completions"),
                openai,
            ),
            (
                Kind::OpenAi,
                Some("https://api.openai.com/v1/chat/completions/"),
                openai,
            ),
            (
                Kind::OpenAi,
                Some("127.0.0.1:8080"),
                "http://127.0.0.1:8080/v1/chat/completions",
            ),
            (
                Kind::OpenAi,
                Some("http://[::1]:1"),
                "http://[::1]:1/v1/chat/completions",
            ),
            (
                Kind::OpenAi,
                Some("https://host/api/paas/v4"),
                "https://host/api/paas/v4/chat/completions",
            ),
            (Kind::Anthropic, None, anthropic),
            (
                Kind::Anthropic,
                Some("https://api.anthropic.com"),
                anthropic,
            ),
            (
                Kind::Anthropic,
                Some("https://api.anthropic.com/v1/messages"),
                anthropic,
            ),
            (
                Kind::Ollama,
                None,
                "http://127.0.0.1:11434/v1/chat/completions",
            ),
            (
                Kind::Ollama,
                Some("http://h:1/api"),
                "http://h:1/v1/chat/completions",
            ),
            (
                Kind::Azure,
                Some("https://x.azure.com"),
                "https://x.azure.com/openai/v1/chat/completions",
            ),
        ] {
            let endpoint = Endpoint::new(kind, given).expect("a good address");
            assert_eq!(endpoint.shown(), want, "{kind} {given:?}");
        }
    }

    #[test]
    fn azure_keeps_deployment_and_version() {
        let url =
            "https://x.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21";
        let endpoint = Endpoint::new(Kind::Azure, Some(url)).expect("a good address");
        assert_eq!(
            endpoint.target,
            "/openai/deployments/d/chat/completions?api-version=2024-10-21"
        );
        assert!(endpoint.tls);
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port),
            ("x.azure.com", 443)
        );
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_without_its_secrets() {
        for (kind, url) in [
            (Kind::OpenAi, "ftp://host"),
            (Kind::OpenAi, "https://"),
            (Kind::OpenAi, "https://me:planted@host/v1?key=planted"),
            (Kind::OpenAi, "http://a b"),
            (Kind::Azure, ""),
        ] {
            let error = Endpoint::new(kind, Some(url)).expect_err(url);
            assert!(!error.to_string().contains("planted"), "{error}");
        }
    }
}
