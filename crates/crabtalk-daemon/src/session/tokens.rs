//! Requests about tokens (REMOTE-1).
//!
//! Invariant: only the answer to the client that created a token contains it; the hash is
//! stored.

use super::Session;
use crate::error::Error;
use crate::remote::new_token;
use crabtalk_config::{Token, end_of, is_name};
use crabtalk_proto::*;
use serde_json::{Value, json};

impl Session {
    pub(super) async fn make_token(&self, request: CreateTokenMsg) -> Result<NewToken, Error> {
        let name = request.name.clone();
        if !is_name(&name) {
            return Err(Error::Invalid(format!("{name:?} is not a valid name")));
        }
        if !request.until.is_empty() {
            let now = jiff::Timestamp::now();
            match end_of(&request.until) {
                None => {
                    return Err(Error::Invalid(format!(
                        "{:?} is neither a date, as in 2027-01-31, nor an instant",
                        request.until
                    )));
                }
                Some(end) if end <= now => {
                    return Err(Error::Invalid(format!("{} has passed", request.until)));
                }
                Some(_) => {}
            }
        }
        let (token, hash) = new_token()
            .map_err(|e| Error::Failed(format!("the system gives no random bytes: {e}")))?;
        let table = table(&request, &hash.to_string());
        let edited = self.node.edit(move |file, config| {
            if config
                .token
                .iter()
                .any(|token| token.name.eq_ignore_ascii_case(&name))
            {
                return Err(Error::Conflict(format!(
                    "the token {name} exists; remove it first, or choose another name"
                )));
            }
            Ok(file.set(&["token", &name], &table)?)
        });
        edited.await?;
        let (listen, fingerprint) = self.way_in().await;
        Ok(NewToken {
            name: request.name,
            token,
            listen,
            fingerprint,
        })
    }

    pub(super) async fn tokens(&self, _: ListTokensMsg) -> Result<TokenList, Error> {
        let config = self.node.config();
        let tokens = config.token.iter().map(|token| self.token_info(token));
        let tokens = tokens.collect();
        let (listen, fingerprint) = self.way_in().await;
        Ok(TokenList {
            tokens,
            listen,
            fingerprint,
        })
    }

    fn token_info(&self, token: &Token) -> TokenInfo {
        let folders = token.cwd.iter().flatten();
        TokenInfo {
            name: token.name.clone(),
            role: token.role.as_str().into(),
            agents: token.agents.clone().unwrap_or_default(),
            senders: token.senders.clone().unwrap_or_default(),
            cwd: folders.map(|f| f.to_string_lossy().into_owned()).collect(),
            until: token.until.map(|t| t.to_string()).unwrap_or_default(),
            connections: self.node.remote.tokens.connections(&token.name),
        }
    }

    /// The addresses of the daemon, and the fingerprint of its certificate.
    async fn way_in(&self) -> (Vec<String>, String) {
        let (listen, fingerprint) = self.node.remote.ears.addresses().await;
        let listen = listen.iter().map(ToString::to_string).collect();
        let fingerprint = fingerprint.map(|f| f.to_string()).unwrap_or_default();
        (listen, fingerprint)
    }

    pub(super) async fn drop_token(&self, request: RemoveTokenMsg) -> Result<(), Error> {
        let edited = self.node.edit(move |file, config| {
            let name = &request.name;
            if !config.token.iter().any(|token| token.name == *name) {
                return Err(Error::NotFound(format!("unknown token {name:?}")));
            }
            file.remove(&["token", name]);
            Ok(())
        });
        edited.await
    }
}

/// The configuration table of a token, without defaults.
fn table(request: &CreateTokenMsg, hash: &str) -> Value {
    let mut table = json!({"hash": hash, "role": request.role});
    for (key, list) in [
        ("agents", &request.agents),
        ("senders", &request.senders),
        ("cwd", &request.cwd),
    ] {
        if !list.is_empty() {
            table[key] = json!(list);
        }
    }
    if !request.until.is_empty() {
        table["until"] = request.until.as_str().into();
    }
    table
}
