//! The tokens in force.
//!
//! Invariant: a token is compared with all tokens in constant time.

use super::grant::Grant;
use arc_swap::ArcSwap;
use crabtalk_config::{Config, TokenHash};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use subtle::{Choice, ConstantTimeEq};

/// The prefix of tokens, which secret scanners recognise.
const PREFIX: &str = "ctk_";

/// Random bytes of a token.
const BYTES: usize = 32;

/// Longest token that is compared; valid ones are shorter.
const MAX_TOKEN_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Tokens(ArcSwap<Vec<Arc<Grant>>>);

impl Tokens {
    /// Applies the tokens of a configuration; ends removed and changed ones.
    pub(crate) fn replace(&self, config: &Config) {
        let before = self.0.load_full();
        let kept = |token: &crabtalk_config::Token| {
            let same = before.iter().find(|grant| grant.token() == token);
            same.map(Arc::clone)
        };
        let tokens = config
            .token
            .iter()
            .filter_map(|token| kept(token).or_else(|| Grant::new(token.clone()).map(Arc::new)));
        let after: Vec<Arc<Grant>> = tokens.collect();
        self.0.store(Arc::new(after));
        let after = self.0.load();
        for grant in before.iter() {
            if !after.iter().any(|kept| Arc::ptr_eq(kept, grant)) {
                grant.end();
            }
        }
    }

    /// Number of a token's connections.
    pub(crate) fn connections(&self, name: &str) -> u32 {
        let all = self.0.load();
        let named = all.iter().find(|grant| grant.name() == name);
        named.map_or(0, |grant| grant.connections())
    }

    /// Finds a token in force by its secret.
    pub(crate) fn find(&self, shown: &str) -> Option<Arc<Grant>> {
        if shown.is_empty() || shown.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let hash = hash(shown);
        let mut found = None;
        for grant in self.0.load().iter() {
            // Compare all of them, for constant time.
            let same: Choice = grant.token().hash.0.ct_eq(&hash.0);
            if bool::from(same) {
                found = Some(Arc::clone(grant));
            }
        }
        found.filter(|grant| !grant.is_over())
    }
}

fn hash(token: &str) -> TokenHash {
    TokenHash(Sha256::digest(token.as_bytes()).into())
}

pub(crate) fn new_token() -> Result<(String, TokenHash), getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    let mut token = PREFIX.to_owned();
    for byte in bytes {
        // Writing into a string never fails.
        let _ = write!(token, "{byte:02x}");
    }
    let hash = hash(&token);
    Ok((token, hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(tokens: &[(&str, &TokenHash, &str)]) -> Config {
        let text: String = tokens
            .iter()
            .map(|(name, hash, rest)| {
                format!("[token.{name}]\nhash = \"{hash}\"\nrole = \"talk\"\n{rest}\n")
            })
            .collect();
        let parsed = Config::parse(&text, Path::new("config.toml"), &|_| None);
        parsed.expect("a configuration").0
    }

    #[tokio::test]
    async fn token_is_valid_until_removed_changed_or_expired() {
        let tokens = Tokens::default();
        let (shown, hash) = new_token().unwrap();
        let (other, other_hash) = new_token().unwrap();
        assert_ne!(shown, other);
        tokens.replace(&config(&[("a", &hash, ""), ("b", &other_hash, "")]));
        let a = tokens.find(&shown).expect("it is there");
        let b = tokens.find(&other).expect("it is there");
        assert_eq!((a.name(), b.name()), ("a", "b"));
        for wrong in [
            "",
            "ctk_",
            &shown[1..],
            &format!("{shown} "),
            &"x".repeat(1000),
        ] {
            assert!(tokens.find(wrong).is_none(), "{wrong}");
        }
        // Unchanged tokens keep their connections.
        tokens.replace(&config(&[
            ("b", &other_hash, ""),
            ("a", &hash, "agents = \"x\""),
        ]));
        assert!(Arc::ptr_eq(&b, &tokens.find(&other).unwrap()));
        let told = a.ended().await;
        assert_eq!(told.to_string(), "this token was removed or changed");
        assert!(!tokens.find(&shown).unwrap().agent("y"));
        tokens.replace(&config(&[("a", &hash, "until = \"2020-01-01T00:00:00Z\"")]));
        assert!(tokens.find(&shown).is_none());
        b.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn end_date_ends_connections() {
        let tokens = Tokens::default();
        let (shown, hash) = new_token().unwrap();
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(30);
        tokens.replace(&config(&[("a", &hash, &format!("until = \"{soon}\""))]));
        let grant = tokens.find(&shown).expect("not over yet");
        assert_eq!(grant.ended().await.to_string(), "this token has expired");
        assert!(tokens.find(&shown).is_none());
    }
}
