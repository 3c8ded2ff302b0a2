//! Logins to servers on other machines: OAuth 2.1 as the protocol wants it.
//!
//! The library knows the protocol: discovery, registration, PKCE, the exchange.
//! Ours are where it is kept, how it is sent, and when a token is renewed.
//!
//! Invariants: a token goes to the address that it was given for and to no other;
//! it is shown nowhere; however many requests find a token too old, it is renewed
//! once; a renewal that has begun goes on to the file, whoever waits for it.
//!
//! Absent on purpose: browsers, listeners, whom to ask.

mod alone;
mod calls;
mod kept;
mod login;
mod revoke;
mod tokens;

pub(crate) use kept::Logins;
pub(crate) use login::Pending;
pub(crate) use tokens::{NoToken, Tokens};

use rmcp::transport::auth::AuthError;

/// What a server or its authorization server may be asked for, where a person
/// has registered by hand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthClient {
    /// The client's name there; empty: it is registered on the fly.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Secret,
    /// What is asked for; empty: what the server says.
    pub scopes: Vec<String>,
    /// It logs in by itself, by its secret: no person does.
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

/// Which command mends that a server wants a login.
pub(crate) fn wanted(name: &str) -> String {
    format!("it wants a login: `crabtalk mcps login {name}`")
}

/// What came of a logout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoggedOut {
    /// Nobody was logged in.
    Nobody,
    /// The login is forgotten here, and the server has taken its tokens back if it
    /// says that it can.
    Done,
    /// The login is forgotten here, and the server has not taken its tokens back
    /// though it says that it can.
    HereAlone {
        /// What may still count there, and why.
        why: String,
    },
}

/// A secret is sent over TLS, or to this machine.
fn check_protected(endpoint: &str) -> Result<(), String> {
    let url = url::Url::parse(endpoint);
    let url = url.map_err(|_| "the address for it cannot be read".to_owned())?;
    let is_here = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        true => Ok(()),
        false => Err("the address for it is not protected by TLS".into()),
    }
}

/// Says what went wrong, with its causes.
fn words(error: &AuthError) -> String {
    crate::http::chain(error)
}
