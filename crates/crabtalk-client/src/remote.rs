//! A daemon elsewhere: its address, a token, and the certificate that was pinned.
//!
//! Invariants: a token goes in clear over loopback alone; beyond it only to the
//! daemon whose certificate was pinned; neither `Debug` nor an error shows it.

use crate::error::Error;
use crabtalk_transport::{Fingerprint, TcpError};
use std::fmt;
use std::net::IpAddr;

/// The port of an address that names none.
const PORT: u16 = 6688;

/// What an address begins with.
const SCHEME: &str = "tcp://";

/// `HOST:PORT` of a daemon elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Reads `tcp://HOST[:PORT]`, also without what it begins with.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{text:?} is no address of a daemon: expected {SCHEME}HOST:PORT, as in {SCHEME}192.168.1.7:{PORT}"
            )
        };
        let rest = match text.split_once("://") {
            Some(("tcp", rest)) => rest,
            Some(_) => return Err(bad()),
            None => text,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // The sixth version's own colons stand in brackets.
        let (host, port) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or_else(bad)?;
                let is_ip = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6());
                if !is_ip {
                    return Err(bad());
                }
                (
                    host,
                    port.strip_prefix(':').or(port.is_empty().then_some("")),
                )
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, Some("")),
            },
        };
        let port = match port.ok_or_else(bad)? {
            "" => PORT,
            port => port.parse().map_err(|_| bad())?,
        };
        let is_host =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(bad());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Whether it is this machine, which needs no encryption to talk to itself.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            // A name is what somebody's resolver says.
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// As it is connected to.
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

/// A daemon elsewhere, and what shows that one may come in.
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
    /// A daemon with TLS, whose certificate has this fingerprint.
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
    /// If it is not on this machine: the token would be everybody's on the way.
    pub fn plain(address: Address, token: impl Into<String>) -> Result<Self, Error> {
        if !address.is_loopback() {
            return Err(Error::Unsafe(format!(
                "{address} is not this machine, and its certificate is not known: nothing goes \
                 there unencrypted"
            )));
        }
        Ok(Self {
            address,
            token: token.into(),
            pin: None,
        })
    }

    /// Where it is.
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

/// Asks a daemon for the fingerprint of its certificate, which a person compares
/// with what the daemon's owner says; `None` if it has no TLS, as one on this
/// machine may.
///
/// # Errors
/// If nobody answers, or not as a daemon does.
pub async fn fingerprint(address: &Address) -> Result<Option<Fingerprint>, Error> {
    match crabtalk_transport::fingerprint_of(&address.host_port()).await {
        Ok(fingerprint) => Ok(Some(fingerprint)),
        Err(TcpError::NoTls { .. }) if address.is_loopback() => Ok(None),
        Err(error) => Err(of(error)),
    }
}

/// A failure of the transport.
pub(crate) fn of(error: TcpError) -> Error {
    match error {
        error @ (TcpError::Taken { .. } | TcpError::Listen { .. } | TcpError::Connect { .. }) => {
            Error::NoDaemon(error.to_string())
        }
        // In the middle of a connection that breaks it looks like this too.
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
    fn nothing_goes_in_clear_beyond_this_machine_and_no_token_is_shown() {
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
