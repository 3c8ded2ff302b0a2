//! Takes tokens back at the server that gave them (RFC 7009).
//!
//! Invariants: they go to the address which that server named when the person
//! logged in, or that the same one names at the end where none was kept, over TLS or on
//! this machine, and to no other; no redirect is followed; it takes a bounded time.

use super::calls::Calls;
use super::{check_protected, words};
use crate::http::{Http, HttpRequest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use oauth2::TokenResponse;
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, StoredCredentials};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use url::form_urlencoded::{Serializer, byte_serialize};

/// How long one answer may take: somebody waits for the logout.
const WITHIN: Duration = Duration::from_secs(10);

/// What a server says of a kind of token that it cannot take back.
const UNSUPPORTED: &str = "unsupported_token_type";

/// Where a server takes tokens back.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revocation {
    endpoint: String,
    /// The client's secret goes into the body: the server takes no other way.
    #[serde(default)]
    secret_in_body: bool,
}

impl Revocation {
    /// What a server's description says, if it says anything.
    pub(super) fn of(described: &AuthorizationMetadata) -> Option<Self> {
        let more = &described.additional_fields;
        let endpoint = more.get("revocation_endpoint")?.as_str()?.to_owned();
        let ways = more.get("revocation_endpoint_auth_methods_supported");
        let takes = |way: &str| {
            let mut ways = ways.and_then(|ways| ways.as_array()).into_iter().flatten();
            ways.any(|known| known.as_str() == Some(way))
        };
        Some(Self {
            endpoint,
            secret_in_body: takes("client_secret_post") && !takes("client_secret_basic"),
        })
    }

    /// Looks up what the server at this address says now: earlier logins kept nothing
    /// of it. What another authorization server than the one that gave the tokens says
    /// does not count: they would go to whomever the server names by now.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) async fn look_up(
        url: &str,
        issuer: Option<&str>,
        http: Arc<dyn Http>,
    ) -> Result<Option<Self>, String> {
        let calls = Arc::new(Calls::new(url, http));
        let looked = async {
            let manager = AuthorizationManager::new_with_oauth_http_client(url, calls).await?;
            manager.resolve_metadata_from_challenge(None).await
        };
        let late = |_| format!("no answer within {} s", WITHIN.as_secs());
        let found = tokio::time::timeout(WITHIN, looked).await.map_err(late)?;
        let found = found.map_err(|e| words(&e))?.metadata;
        let is_same = issuer.is_some() && found.issuer.as_deref() == issuer;
        match Self::of(&found) {
            Some(_) if !is_same => Err("it names another server for logins by now".into()),
            known => Ok(known),
        }
    }

    /// Takes back what was kept, as the client with this secret.
    ///
    /// # Errors
    /// What may still count there, and why.
    pub(super) async fn take_back(
        &self,
        kept: &StoredCredentials,
        secret: &str,
        http: Arc<dyn Http>,
    ) -> Result<(), String> {
        check_protected(&self.endpoint)?;
        let client = (kept.client_id.as_str(), secret);
        let Some(tokens) = &kept.token_response else {
            return Ok(());
        };
        let calls = Calls::new(&self.endpoint, http);
        // Its end is the end of what it was renewed to; the other one lives on for
        // minutes, and not every server can end it.
        if let Some(token) = tokens.refresh_token() {
            let said = self
                .send(&calls, client, token.secret(), "refresh_token")
                .await;
            said.map_err(|why| format!("its tokens may still count there: {why}"))?;
        }
        let token = tokens.access_token().secret();
        match self.send(&calls, client, token, "access_token").await {
            Err(why) if !why.contains(UNSUPPORTED) => {
                Err(format!("its last token may count until it ends: {why}"))
            }
            Err(_) | Ok(()) => Ok(()),
        }
    }

    async fn send(
        &self,
        calls: &Calls,
        client: (&str, &str),
        token: &str,
        kind: &str,
    ) -> Result<(), String> {
        let request = self.request(client, token, kind)?;
        let answered = tokio::time::timeout(WITHIN, calls.answer(request, false)).await;
        let late = |_| format!("no answer within {} s", WITHIN.as_secs());
        let answer = answered.map_err(late)?.map_err(|e| e.to_string())?;
        match answer.status() {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(()),
            status => {
                let body: serde_json::Value =
                    serde_json::from_slice(answer.body()).unwrap_or_default();
                let said = body["error"].as_str().unwrap_or_default();
                let said: String = said.chars().filter(char::is_ascii_graphic).collect();
                Err(format!("it answered {status} {said}").trim_end().to_owned())
            }
        }
    }

    fn request(
        &self,
        (id, secret): (&str, &str),
        token: &str,
        kind: &str,
    ) -> Result<HttpRequest, String> {
        let mut form = Serializer::new(String::new());
        form.append_pair("token", token)
            .append_pair("token_type_hint", kind);
        let mut by_header = None;
        if secret.is_empty() || self.secret_in_body {
            form.append_pair("client_id", id);
            if !secret.is_empty() {
                form.append_pair("client_secret", secret);
            }
        } else {
            by_header = Some(basic(id, secret)?);
        }
        let mut request = HttpRequest::new(Bytes::from(form.finish()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self
            .endpoint
            .parse()
            .map_err(|_| "the address for it cannot be read".to_owned())?;
        let headers = request.headers_mut();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(value) = by_header {
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }
}

/// Name and secret, as RFC 6749 has them in a header: each in the form of a form.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, String> {
    let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", part(id), part(secret)));
    let value = HeaderValue::from_str(&format!("Basic {pair}"));
    let mut value = value.map_err(|_| "its name is no text for a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(more: serde_json::Value) -> Option<Revocation> {
        let mut all = serde_json::json!({
            "authorization_endpoint": "https://a/authorize", "token_endpoint": "https://a/token",
        });
        let (all, more) = (
            all.as_object_mut().expect("an object"),
            more.as_object().expect("one"),
        );
        all.extend(more.clone());
        let all = serde_json::Value::Object(all.clone());
        Revocation::of(&serde_json::from_value(all).expect("a description"))
    }

    #[test]
    fn a_server_says_where_and_how_it_takes_tokens_back() {
        assert!(described(serde_json::json!({})).is_none());
        let plain = described(serde_json::json!({"revocation_endpoint": "https://a/revoke"}));
        assert!(plain.is_some_and(|known| !known.secret_in_body));
        let by_body = described(serde_json::json!({
            "revocation_endpoint": "https://a/revoke",
            "revocation_endpoint_auth_methods_supported": ["client_secret_post"],
        }));
        assert!(by_body.is_some_and(|known| known.secret_in_body));
    }

    #[test]
    fn tokens_go_nowhere_without_tls_but_on_this_machine() {
        for (endpoint, is_fine) in [
            ("https://a.example/revoke", true),
            ("http://127.0.0.1:1/revoke", true),
            ("http://[::1]:1/revoke", true),
            ("http://localhost/revoke", true),
            ("http://a.example/revoke", false),
            ("http://127.0.0.1.a.example/revoke", false),
            ("file:///etc/passwd", false),
            ("nonsense", false),
        ] {
            assert_eq!(check_protected(endpoint).is_ok(), is_fine, "{endpoint}");
        }
    }

    #[test]
    fn a_name_with_a_colon_stays_apart_from_its_secret() {
        let value = basic("a:b", "c d").expect("a header");
        let pair = BASE64_STANDARD.encode("a%3Ab:c+d");
        assert_eq!(value.to_str().ok(), Some(format!("Basic {pair}").as_str()));
    }
}
