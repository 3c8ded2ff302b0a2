//! Logins to servers on other machines with OAuth 2.1.
//!
//! The library implements discovery, registration, PKCE and the exchange.
//! This module stores tokens, sends them and decides when to renew them.
//!
//! Invariants: a token is sent only to the address that it was issued for; it is never
//! shown; concurrent requests share one renewal; a renewal is saved even if all its
//! requests are dropped; this module opens no browser or listener.

mod alone;
mod calls;
mod login;
mod logins;
mod tokens;

pub(crate) use login::Pending;
pub(crate) use logins::Logins;
pub(crate) use tokens::{NoToken, Tokens};

use rmcp::transport::auth::AuthError;

/// A client that was registered manually.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthClient {
    /// The client's id; empty to register one at the login.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Secret,
    /// The requested scopes; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// Whether the client logs in with its secret, without a person.
    pub is_alone: bool,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() {
            "(none)"
        } else {
            "(hidden)"
        })
    }
}

/// The error of a server that needs a login.
pub(crate) fn wanted(name: &str) -> String {
    format!("it needs a login: run `crabtalk mcps login {name}`")
}

/// Checks that a secret is sent over TLS or to this machine.
fn check_protected(endpoint: &str) -> Result<(), String> {
    let url = url::Url::parse(endpoint);
    let url = url.map_err(|_| "the login address is not a URL".to_owned())?;
    let is_here = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        true => Ok(()),
        false => Err("the login address is not protected by TLS".into()),
    }
}

/// Formats an error with its causes.
fn words(error: &AuthError) -> String {
    crate::http::chain(error)
}
