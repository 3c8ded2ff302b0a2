//! Who a client is, as the daemon itself found out.

use crate::{NameError, check_name};
use std::fmt;
use std::sync::Arc;

/// How the log writes the owner: the word that logs have always had.
const OWNER: &str = "local";

/// What stands before a token's name in the log. No token can be named so that
/// it reads as the owner, since names have no `/`.
const TOKEN: &str = "token/";

/// The same, of a token that speaks for an owner. Versions that do not know it
/// take it for nobody.
const ADMIN: &str = "admin/";

/// Who a client is, as its connection proved it, never as it says. It goes from the
/// accepted connection through the session to the origin of runs and into the log.
///
/// Only the listener of the Unix socket makes the owner; no text that a client or a
/// configuration gives becomes it. A token has an owner's authority only where it
/// has the role `admin` and names an owner as its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The user whose daemon it is: the kernel says who connected to the socket.
    Owner,
    /// Whoever showed a token.
    Token(TokenName),
    /// Whoever showed a token of the role `admin`, and speaks as an owner by name.
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
    /// Checks and takes a name.
    ///
    /// # Errors
    /// For what is no name (CONV-2).
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
    fn no_name_of_a_token_reads_as_the_owner() {
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
    fn what_nobody_wrote_is_nobody() {
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
