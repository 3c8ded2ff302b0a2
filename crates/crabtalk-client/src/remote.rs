//! A daemon on another machine: its address, a token, and the pinned certificate.
//!
//! Invariants: a token is sent unencrypted over loopback only, and otherwise only to the
//! daemon with the pinned certificate; neither `Debug` nor an error shows the token.

use crate::error::Error;
use crabtalk_transport::{Fingerprint, TcpError};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The default port.
const PORT: u16 = 6688;

/// The prefix of an address.
const SCHEME: &str = "tcp://";

/// `HOST:PORT` of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Parses `tcp://HOST[:PORT]`; the scheme may be missing.
    ///
    /// # Errors
    /// An invalid address.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{text:?} is not an address of a daemon: use {SCHEME}HOST:PORT, as in {SCHEME}192.168.1.7:{PORT}"
            )
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // IPv6 addresses are in brackets.
        let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match (inner, rest.split_once(':')) {
            (Some((host, port)), _) if host.parse::<Ipv6Addr>().is_ok() => (
                host,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            ),
            (Some(_), _) => return Err(bad()),
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (rest, Some("")),
        };
        let port = match port.ok_or_else(bad)? {
            "" => PORT,
            port => port.parse().map_err(|_| bad())?,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if inner.is_none() && (host.is_empty() || !host.chars().all(is_host)) {
            return Err(bad());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Whether the address is on this machine and needs no encryption.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            // Other names may resolve elsewhere.
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// `HOST:PORT`.
    pub(crate) fn host_port(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.host_port())
    }
}

/// A daemon on another machine, with token and pinned certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    address: Address,
    token: String,
    pin: Option<Fingerprint>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("address", &self.address)
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// A daemon with TLS and a pinned fingerprint.
    pub fn pinned(address: Address, token: impl Into<String>, pin: Fingerprint) -> Self {
        Self {
            address,
            token: token.into(),
            pin: Some(pin),
        }
    }

    /// A daemon without TLS.
    ///
    /// # Errors
    /// The address is on another machine: the token would be sent unencrypted.
    pub fn plain(address: Address, token: impl Into<String>) -> Result<Self, Error> {
        if !address.is_loopback() {
            return Err(Error::Unsafe(format!(
                "{address} is another machine without a pinned certificate: the token is not sent \
                 unencrypted"
            )));
        }
        Ok(Self {
            address,
            token: token.into(),
            pin: None,
        })
    }

    /// The address of the daemon.
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn pin(&self) -> Option<Fingerprint> {
        self.pin
    }
}

/// Reads the fingerprint of a daemon's certificate, for a person to compare;
/// `None` without TLS, which is allowed on this machine.
///
/// # Errors
/// The server does not answer or is not a daemon.
pub async fn fingerprint(address: &Address) -> Result<Option<Fingerprint>, Error> {
    match crabtalk_transport::fingerprint_of(&address.host_port()).await {
        Ok(fingerprint) => Ok(Some(fingerprint)),
        Err(TcpError::NoTls { .. }) if address.is_loopback() => Ok(None),
        Err(error) => Err(of(error)),
    }
}

/// Converts an error of the transport.
pub(crate) fn of(error: TcpError) -> Error {
    match error {
        error @ (TcpError::Taken(_) | TcpError::Listen { .. } | TcpError::Connect { .. }) => {
            Error::NoDaemon(error.to_string())
        }
        error @ TcpError::NoTls { .. } => Error::NoDaemon(error.to_string()),
        error @ TcpError::Changed { .. } => Error::Unsafe(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        for (text, want) in [
            ("tcp://example.org:7", "tcp://example.org:7"),
            ("tcp://example.org", "tcp://example.org:6688"),
            ("192.168.1.7", "tcp://192.168.1.7:6688"),
            ("tcp://[::1]:7/", "tcp://[::1]:7"),
            ("[2001:db8::1]", "tcp://[2001:db8::1]:6688"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), want);
        }
        for text in [
            "",
            "tcp://",
            "http://a",
            "a:b",
            "tcp://a:70000",
            "[a]:1",
            "[::1",
            "[::1]x",
            "a b",
            "tcp://user@host",
            "::1",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clear_text_is_refused_beyond_loopback() {
        let local = Address::parse("127.0.0.1:1").unwrap();
        let remote = Remote::plain(local, "ctk_secret").unwrap();
        assert!(!format!("{remote:?}").contains("secret"));
        for far in ["192.168.1.7", "example.org", "[::ffff:10.0.0.1]"] {
            let error = Remote::plain(Address::parse(far).unwrap(), "ctk_secret").unwrap_err();
            assert!(matches!(error, Error::Unsafe(_)), "{error:?}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
