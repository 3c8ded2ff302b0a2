//! The values of `config.toml`.
//!
//! Invariant: a `Config` has all values, including defaults, and never changes; a reload
//! creates a new one.

mod expand;
mod mcp;
mod provider;
mod remote;
mod resolve;
mod sections;

pub use expand::MissingVariable;
pub use mcp::{Mcp, McpGrant, McpOauth, McpTransport, McpTrust};
pub use provider::{Model, Price, Provider, ProviderKind};
pub use remote::{TCP_PORT, Tcp, TcpTls, Token, TokenHash, TokenRole, end_of};
pub use sections::{
    Cli, Cron, Keys, Limits, Memory, Notify, ProjectMode, Resume, Runs, Sandbox, Skills, Storage,
    Theme,
};

use crate::file::read_limited;
use crate::values::list;
use crate::{Env, Error, Warning};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// Largest configuration file; the largest real ones have a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// The node's configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The default agent of messages.
    pub default_agent: String,
    /// The node's active model.
    pub model: Option<String>,
    /// Senders with the owner's authority.
    #[serde(deserialize_with = "list")]
    pub owners: Vec<String>,
    /// Model providers, in the file's order.
    #[serde(serialize_with = "write_named", deserialize_with = "read_named")]
    pub provider: Vec<Provider>,
    /// MCP servers, in the file's order.
    #[serde(serialize_with = "write_named", deserialize_with = "read_named")]
    pub mcp: Vec<Mcp>,
    /// `[memory]`.
    pub memory: Memory,
    /// `[storage]`.
    pub storage: Storage,
    /// `[runs]`.
    pub runs: Runs,
    /// `[sandbox]`.
    pub sandbox: Sandbox,
    /// `[limits]`.
    pub limits: Limits,
    /// `[skills]`.
    pub skills: Skills,
    /// `[cron]`.
    pub cron: Cron,
    /// `[notify]`.
    pub notify: Notify,
    /// `[cli]`.
    pub cli: Cli,
    /// `[tcp]`; without it the daemon listens only on its Unix socket.
    pub tcp: Option<Tcp>,
    /// Tokens for `[tcp]`, in the file's order.
    #[serde(serialize_with = "write_named", deserialize_with = "read_named")]
    pub token: Vec<Token>,
}

impl Config {
    /// Parses a configuration text. Messages name `file`.
    pub fn parse(text: &str, file: &Path, env: &Env<'_>) -> Result<(Self, Vec<Warning>), Error> {
        resolve::parse(text, file, env)
    }

    /// Reads the configuration file; if it is absent, all values are defaults.
    pub fn load(file: &Path, env: &Env<'_>) -> Result<(Self, Vec<Warning>), Error> {
        let text = read_limited(file, MAX_CONFIG_BYTES)?.unwrap_or_default();
        Self::parse(&text, file, env)
    }

    /// The effective configuration with masked secrets (`GetConfig`).
    pub fn effective_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("string keys and finite numbers are JSON")
    }
}

/// An item with a table of its name in the file, such as `[provider.NAME]`.
trait Named {
    fn name(&self) -> &str;
    fn set_name(&mut self, name: String);
}

fn write_named<S: Serializer, T: Named + Serialize>(
    items: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(items.len()))?;
    for item in items {
        map.serialize_entry(item.name(), item)?;
    }
    map.end()
}

fn read_named<'de, D: Deserializer<'de>, T: Named + Deserialize<'de>>(
    reader: D,
) -> Result<Vec<T>, D::Error> {
    struct Tables<T>(PhantomData<T>);

    impl<'de, T: Named + Deserialize<'de>> Visitor<'de> for Tables<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table of tables")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some((name, mut item)) = map.next_entry::<String, T>()? {
                item.set_name(name);
                items.push(item);
            }
            Ok(items)
        }
    }

    reader.deserialize_map(Tables(PhantomData))
}

#[cfg(test)]
mod tests;
