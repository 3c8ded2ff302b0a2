//! A login: from the address that a person opens to the tokens in the file.

use super::kept::Beside;
use super::revoke::Revocation;
use super::{OAuthClient, Tokens, words};
use crate::http::HttpRequest;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What authorization servers show as the name of whoever asks.
const OUR_NAME: &str = "CrabTalk";

/// How long a person may take.
const WITHIN: Duration = Duration::from_secs(900);

/// A login that waits for its person.
pub(crate) struct Pending {
    manager: AuthorizationManager,
    /// The address that the person opens.
    pub(crate) address: String,
    tokens: Arc<Tokens>,
    begun: Instant,
}

impl Pending {
    /// Finds out whom to ask, registers, and makes the address that the person
    /// opens. `redirect` is where the person's browser goes in the end.
    pub(crate) async fn begin(
        tokens: Arc<Tokens>,
        client: &OAuthClient,
        redirect: &str,
    ) -> Result<Self, String> {
        if tokens.is_alone() {
            let name = &tokens.name;
            return Err(format!(
                "nobody logs in to it: the client of [mcp.{name}.oauth] does, by itself"
            ));
        }
        let challenge = tokens.ask().await?;
        let mut manager = tokens.manager().await.map_err(|e| words(&e))?;
        let found = manager
            .resolve_metadata_from_challenge(challenge.as_deref())
            .await;
        let found = found.map_err(|e| words(&e))?.metadata;
        let revocation = Revocation::of(&found);
        manager.set_metadata(found);
        let scopes = match client.scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => client.scopes.clone(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let mut secret = client.secret.0.clone();
        if client.id.is_empty() {
            let registered = manager.register_client(OUR_NAME, redirect, &scopes).await;
            let registered = registered.map_err(|e| {
                format!(
                    "{}; a client that was registered by hand goes into [mcp.{}.oauth]",
                    words(&e),
                    tokens.name
                )
            })?;
            secret = registered.client_secret.unwrap_or_default();
        } else {
            let mut known = OAuthClientConfig::new(client.id.clone(), redirect);
            if !secret.is_empty() {
                known = known.with_client_secret(secret.clone());
            }
            manager.configure_client(known).map_err(|e| words(&e))?;
        }
        tokens.place.set_beside(Beside {
            client_secret: secret,
            revocation,
        });
        let address = manager.get_authorization_url(&scopes).await;
        Ok(Self {
            address: address.map_err(|e| words(&e))?,
            manager,
            tokens,
            begun: Instant::now(),
        })
    }

    /// Whether its person has had time enough.
    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() > WITHIN
    }

    /// Takes where the person's browser went, and keeps the tokens.
    pub(crate) async fn finish(&self, redirected: &str) -> Result<(), String> {
        let came = came(redirected)?;
        let (code, state, issuer) = (&came.code, &came.state, came.issuer.as_deref());
        let token = self
            .manager
            .exchange_code_for_token_with_issuer(code, state, issuer)
            .await;
        token.map_err(|e| words(&e))?;
        tracing::info!(server = %self.tokens.name, "somebody logged in to an MCP server");
        Ok(())
    }
}

/// What a browser brings back.
struct Came {
    code: String,
    state: String,
    issuer: Option<String>,
}

fn came(redirected: &str) -> Result<Came, String> {
    let address = url::Url::parse(redirected).map_err(|_| "that is no address".to_owned())?;
    let of = |name: &str| {
        let mut pairs = address.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    if let Some(error) = of("error") {
        let more = of("error_description").map_or_else(String::new, |more| format!(": {more}"));
        return Err(format!("the login was refused ({error}{more})"));
    }
    match (of("code"), of("state")) {
        (Some(code), Some(state)) => Ok(Came {
            code,
            state,
            issuer: of("iss"),
        }),
        _ => Err("the address has neither a code nor an error".into()),
    }
}

impl Tokens {
    /// Asks the server what it wants, without credentials.
    async fn ask(&self) -> Result<Option<String>, String> {
        // What it said of a call says more: which rights that would take.
        if let Some(challenge) = self.challenge().filter(|said| !said.is_empty()) {
            return Ok(Some(challenge));
        }
        let hello = serde_json::json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE,
                "capabilities": {},
                "clientInfo": {"name": "crabtalk", "version": env!("CARGO_PKG_VERSION")},
            },
        });
        let mut request = HttpRequest::new(Bytes::from(hello.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self
            .url
            .parse()
            .map_err(|_| "its address cannot be read".to_owned())?;
        let host = request.uri().authority().map(|authority| {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            HeaderValue::from_str(host)
        });
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        if let Some(Ok(host)) = host {
            headers.insert(HOST, host);
        }
        let answer = self.http.send(request).await.map_err(|e| e.to_string())?;
        if answer.status.is_success() {
            // One that shakes hands with anybody has refused something else.
            return match self.is_refused() {
                true => Ok(None),
                false => Err("it wants no login".into()),
            };
        }
        let said = answer.headers.get(WWW_AUTHENTICATE);
        let said = said
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(said),
            status => Err(format!("it answered {status}, and asked for no login")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_brings_is_a_code_or_a_reason() {
        let fine = came("http://127.0.0.1:1/callback?code=a%2Fb&state=s&iss=https%3A%2F%2Fx");
        let fine = fine.expect("a code");
        assert_eq!((fine.code.as_str(), fine.state.as_str()), ("a/b", "s"));
        assert_eq!(fine.issuer.as_deref(), Some("https://x"));
        for (address, why) in [
            (
                "http://x/?error=access_denied&error_description=no",
                "access_denied: no",
            ),
            ("http://x/?code=1", "neither"),
            ("no address", "no address"),
        ] {
            let said = came(address).err().expect("a reason");
            assert!(said.contains(why), "{said}");
        }
    }
}
