//! A person's login, from the address to open to the saved tokens.

use super::{OAuthClient, Tokens, words};
use crate::http::HttpRequest;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The client's name that authorization servers show.
const OUR_NAME: &str = "CrabTalk";

/// Time for a person to log in.
const WITHIN: Duration = Duration::from_secs(900);

/// A login that waits for the browser.
pub(crate) struct Pending {
    manager: AuthorizationManager,
    /// The address to open.
    pub(crate) address: String,
    tokens: Arc<Tokens>,
    begun: Instant,
}

impl Pending {
    /// Discovers the authorization server, registers the client, and creates the address
    /// to open. The server finally redirects the browser to `redirect`.
    pub(crate) async fn begin(
        tokens: Arc<Tokens>,
        client: &OAuthClient,
        redirect: &str,
    ) -> Result<Self, String> {
        if tokens.is_alone() {
            let name = &tokens.name;
            return Err(format!(
                "it needs no login: [mcp.{name}.oauth] has client credentials"
            ));
        }
        let challenge = tokens.ask().await?;
        let mut manager = tokens.manager().await.map_err(|e| words(&e))?;
        let found = manager
            .resolve_metadata_from_challenge(challenge.as_deref())
            .await;
        let found = found.map_err(|e| words(&e))?.metadata;
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
                    "{}; if you registered a client by hand, add it to [mcp.{}.oauth]",
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
        tokens.place.set_secret(secret);
        let address = manager.get_authorization_url(&scopes).await;
        Ok(Self {
            address: address.map_err(|e| words(&e))?,
            manager,
            tokens,
            begun: Instant::now(),
        })
    }

    /// Whether the login has expired.
    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() > WITHIN
    }

    /// Exchanges the code in the redirect address for tokens and saves
    /// them.
    pub(crate) async fn finish(&self, redirected: &str) -> Result<(), String> {
        let came = came(redirected)?;
        let (code, state, issuer) = (&came.code, &came.state, came.issuer.as_deref());
        let token = self
            .manager
            .exchange_code_for_token_with_issuer(code, state, issuer)
            .await;
        token.map_err(|e| words(&e))?;
        tracing::info!(server = %self.tokens.name, "logged in to an MCP server");
        Ok(())
    }
}

/// The parameters of a redirect.
struct Came {
    code: String,
    state: String,
    issuer: Option<String>,
}

fn came(redirected: &str) -> Result<Came, String> {
    let address = url::Url::parse(redirected).map_err(|_| "this is not a URL".to_owned())?;
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
    /// Requests the server's challenge, without credentials.
    async fn ask(&self) -> Result<Option<String>, String> {
        // The challenge of a refused call names the scopes.
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
            .map_err(|_| "its address is not a URL".to_owned())?;
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
            // The handshake needs no login; a later request was refused.
            return match self.is_refused() {
                true => Ok(None),
                false => Err("it needs no login".into()),
            };
        }
        let said = answer.headers.get(WWW_AUTHENTICATE);
        let said = said
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(said),
            status => Err(format!("it answered {status} and did not request a login")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_has_a_code_or_an_error() {
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
            ("nonsense", "not a URL"),
        ] {
            let said = came(address).err().expect("a reason");
            assert!(said.contains(why), "{said}");
        }
    }
}
