//! The verified identity of a client.

use crate::{NameError, check_name};
use std::fmt;
use std::sync::Arc;

/// The owner in logs.
const OWNER: &str = "local";

/// Prefix of a token in logs. Names contain no `/`, so that no token reads as the
/// owner.
const TOKEN: &str = "token/";

/// Prefix of a token that speaks for an owner. Versions without it treat such a token
/// as unknown.
const ADMIN: &str = "admin/";

/// The identity of a client, as its connection proved it; part of a run's origin and
/// of the log.
///
/// Only the listener of the Unix socket creates the owner; text of a client or of the
/// configuration never does. A token has an owner's authority only with the role `admin`
/// and an owner as its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The user whose daemon this is, as the kernel reports for the socket's peer.
    Owner,
    /// The holder of a token.
    Token(TokenName),
    /// The holder of a token with the role `admin` that speaks as an owner.
    Admin(TokenName),
}

impl Principal {
    /// Parses the output of `Display`; returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if text == OWNER {
            return Some(Self::Owner);
        }
        let named = |name: &str| TokenName::new(name).ok();
        match text.strip_prefix(ADMIN) {
            Some(name) => named(name).map(Self::Admin),
            None => named(text.strip_prefix(TOKEN)?).map(Self::Token),
        }
    }

    /// Whether this principal has an owner's authority when it speaks as an owner's
    /// sender.
    pub fn may_be_owner(&self) -> bool {
        match self {
            Self::Owner | Self::Admin(_) => true,
            Self::Token(_) => false,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str(OWNER),
            Self::Token(name) => write!(f, "{TOKEN}{name}"),
            Self::Admin(name) => write!(f, "{ADMIN}{name}"),
        }
    }
}

/// The name of a token in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenName(Arc<str>);

impl TokenName {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// The name is not valid (CONV-2).
    pub fn new(name: &str) -> Result<Self, NameError> {
        check_name(name)?;
        Ok(Self(name.into()))
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_names_do_not_read_as_the_owner() {
        for name in ["local", "owner", "Owner", "token"] {
            let token = Principal::Token(TokenName::new(name).expect("a name"));
            assert_ne!(token, Principal::Owner);
            let written = token.to_string();
            assert_ne!(written, "local");
            assert_eq!(Principal::parse(&written), Some(token));
            let admin = Principal::Admin(TokenName::new(name).expect("a name"));
            assert_eq!(Principal::parse(&admin.to_string()), Some(admin.clone()));
            assert!(admin.may_be_owner());
        }
        for name in [
            "",
            "token/local",
            "a/b",
            "local\n",
            " local",
            "lo\u{200b}cal",
        ] {
            assert!(TokenName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn unknown_principals_are_refused() {
        for text in [
            "",
            "Local",
            "local ",
            "laptop",
            "token/",
            "token/a/b",
            "admin/",
            "admin/a/b",
            "owner",
        ] {
            assert_eq!(Principal::parse(text), None, "{text:?}");
        }
    }
}
