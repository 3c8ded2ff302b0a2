//! The identity of a client, as the daemon verified it.

use crate::{NameError, check_name};
use std::fmt;
use std::sync::Arc;

/// How the log writes the owner: the word that logs have always had.
const OWNER: &str = "local";

/// Precedes a token's name in the log. No token can be named to read as the owner,
/// since names have no `/`.
const TOKEN: &str = "token/";

/// Precedes the name of a token that speaks for an owner. Versions without it treat
/// such a token as unknown.
const ADMIN: &str = "admin/";

/// The identity of a client, as its connection proved it. It is part of the origin
/// of runs and of the log.
///
/// Only the listener of the Unix socket makes the owner; no text of a client or a
/// configuration does. A token has an owner's authority only with the role `admin`
/// and an owner as its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The user whose daemon it is: the kernel says who connected to the socket.
    Owner,
    /// The holder of a token.
    Token(TokenName),
    /// The holder of a token with the role `admin` that speaks as an owner.
    Admin(TokenName),
}

impl Principal {
    /// Reads what `Display` wrote; `None` for anything else.
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

    /// Whether an owner's sender has an owner's authority when this one speaks
    /// as it.
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
