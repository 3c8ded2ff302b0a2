//! The endpoint of a provider's requests (MODEL-2).
//! Invariant: every address that a provider documents leads to the same endpoint.

use crate::bedrock;
use crate::config::{Kind, without_secrets};
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// Suffixes of full endpoint addresses, which are removed.
const ENDPOINTS: [&str; 4] = ["/chat/completions", "/messages", "/completions", "/models"];

/// The path of Google's OpenAI-compatible API.
const GOOGLE_COMPATIBLE: &str = "/openai";

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} is not a valid base_url: {reason}; use an address such as https://host/v1")]
pub struct Error {
    /// The address, without anything secret.
    pub url: String,
    /// The problem.
    pub reason: String,
}

/// The server and the request target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) tls: bool,
    pub(crate) host: String,
    /// The `Host` header.
    pub(crate) authority: String,
    /// The request target of the streaming call, or its part before the model.
    pub(crate) target: String,
    /// The request target after the model; empty if the target does not contain the model.
    tail: String,
}

impl Endpoint {
    /// The endpoint of a kind at `base_url`, or at the kind's default address.
    pub(crate) fn new(kind: Kind, base_url: Option<&str>) -> Result<Self, Error> {
        let default = match kind {
            Kind::OpenAi => "https://api.openai.com/v1",
            Kind::Anthropic => "https://api.anthropic.com/v1",
            Kind::Google => "https://generativelanguage.googleapis.com/v1beta",
            Kind::Bedrock => "https://bedrock-runtime.us-east-1.amazonaws.com",
            Kind::Ollama => "http://127.0.0.1:11434/v1",
            Kind::Azure | Kind::Offline => "",
        };
        let url = base_url.unwrap_or(default).trim();
        let wrong = |reason: &str| Error {
            url: without_secrets(url),
            reason: reason.to_owned(),
        };
        if url.is_empty() {
            return Err(wrong("it is empty, and this kind has no default"));
        }
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole.parse().map_err(|_| wrong("it is not a URL"))?;
        let parts = uri.into_parts();
        let tls = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTPS => true,
            Some(scheme) if scheme == Scheme::HTTP => false,
            Some(_) | None => return Err(wrong("only http and https are supported")),
        };
        let authority = parts.authority.ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "a password in it would be sent unencrypted; use api_key or headers",
            ));
        }
        let given = parts.path_and_query.as_ref();
        let (target, tail) = match kind {
            Kind::Google => google(given),
            Kind::Bedrock => bedrock(given),
            Kind::OpenAi | Kind::Anthropic | Kind::Azure | Kind::Ollama | Kind::Offline => {
                (target(kind, given), String::new())
            }
        };
        Ok(Self::at(&authority, tls, target, tail))
    }

    /// The request target for a model.
    pub(crate) fn target_of(&self, model_id: &str) -> String {
        if self.tail.is_empty() {
            return self.target.clone();
        }
        // Some names include the collection `models/`.
        let name = model_id.strip_prefix("models/").unwrap_or(model_id);
        format!("{}{}{}", self.target, bedrock::escape(name), self.tail)
    }

    /// The absolute address of a request target.
    pub(crate) fn address(&self, target: &str) -> Uri {
        let scheme = if self.tls {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        Uri::builder()
            .scheme(scheme)
            .authority(self.authority.as_str())
            .path_and_query(target)
            .build()
            .expect("its parts were parsed, and names in the path are escaped")
    }

    /// Whether the endpoint is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }

    fn at(authority: &Authority, tls: bool, target: String, tail: String) -> Self {
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        Self {
            tls,
            host,
            authority: authority.as_str().to_owned(),
            target,
            tail,
        }
    }

    /// The endpoint as shown in errors.
    pub(crate) fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let path = self.target.split('?').next().unwrap_or_default();
        format!(
            "{scheme}://{}{}",
            self.authority,
            path.trim_end_matches('/')
        )
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
    // Ollama serves its native API next to the compatible one.
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

/// Google's target, split at the model.
fn google(given: Option<&PathAndQuery>) -> (String, String) {
    let path = given.map_or("", PathAndQuery::path);
    let path = path.split("/models").next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(GOOGLE_COMPATIBLE).unwrap_or(path);
    let base = if path.is_empty() { "/v1beta" } else { path };
    let query = given.and_then(PathAndQuery::query);
    let query = query
        .filter(|query| *query != "alt=sse")
        .map_or(String::new(), |query| format!("&{query}"));
    let tail = format!(":streamGenerateContent?alt=sse{query}");
    (format!("{base}/models/"), tail)
}

/// Bedrock's target, split at the model.
fn bedrock(given: Option<&PathAndQuery>) -> (String, String) {
    let path = given.map_or("", PathAndQuery::path);
    let path = path.split("/model/").next().unwrap_or_default();
    let base = path.trim_end_matches('/');
    (format!("{base}/model/"), "/converse-stream".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalised() {
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
        assert_eq!(endpoint.host, "x.azure.com");
    }

    #[test]
    fn model_is_part_of_googles_and_bedrocks_target() {
        let gemini = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
        let claude = "/model/eu.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream";
        let google = "https://generativelanguage.googleapis.com";
        for (kind, given, id, want) in [
            (Kind::Google, None, "gemini-2.5-flash", gemini),
            (
                Kind::Google,
                Some("".into()),
                "models/gemini-2.5-flash",
                gemini,
            ),
            (
                Kind::Google,
                Some("/v1beta/".into()),
                "gemini-2.5-flash",
                gemini,
            ),
            (
                Kind::Google,
                Some("/v1beta/openai/".into()),
                "gemini-2.5-flash",
                gemini,
            ),
            (
                Kind::Google,
                Some("/v1beta/models/x:generateContent".into()),
                "gemini-2.5-flash",
                gemini,
            ),
            (
                Kind::Google,
                Some("/v1?x=1".to_owned()),
                "g",
                "/v1/models/g:streamGenerateContent?alt=sse&x=1",
            ),
            (
                Kind::Bedrock,
                None,
                "eu.anthropic.claude-sonnet-4-5-v1:0",
                claude,
            ),
            (
                Kind::Bedrock,
                Some("/model/x/converse".into()),
                "eu.anthropic.claude-sonnet-4-5-v1:0",
                claude,
            ),
            (
                Kind::Bedrock,
                Some("/proxy/".into()),
                "arn:aws:x/y",
                "/proxy/model/arn%3Aaws%3Ax%2Fy/converse-stream",
            ),
        ] {
            let url = given.map(|path: String| format!("{google}{path}"));
            let endpoint = Endpoint::new(kind, url.as_deref()).expect("a good address");
            assert_eq!(endpoint.target_of(id), want, "{url:?}");
        }
        let endpoint = Endpoint::new(Kind::OpenAi, None).expect("its own address");
        assert_eq!(endpoint.target_of("any"), "/v1/chat/completions");
        assert!(!endpoint.is_loopback());
    }

    #[test]
    fn invalid_address_is_refused_without_its_secrets() {
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
