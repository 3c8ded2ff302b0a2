//! `[mcp.NAME]`.

use super::Named;
use super::expand::MissingVariable;
use super::provider::read_key;
use crate::values::{list, within};
use crate::{Error, Secret, Written};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "McpTable")]
pub struct Mcp {
    /// The server's name.
    #[serde(skip)]
    pub name: String,
    /// How to connect to the server.
    #[serde(flatten)]
    pub transport: McpTransport,
    /// Whether the server is used.
    pub enabled: bool,
    /// Whether the server is restarted after it ends.
    pub auto_restart: bool,
    /// Time limit in seconds for a call without progress.
    pub timeout_secs: u64,
    /// Time in seconds without calls after which the program is ended.
    pub idle_secs: u64,
    /// Whether the annotations of its tools are trusted.
    pub trust: McpTrust,
    /// The OAuth client for the server.
    #[serde(skip_serializing_if = "McpOauth::is_empty")]
    pub oauth: McpOauth,
    /// An unset variable that the server needs.
    #[serde(skip)]
    pub missing: Option<MissingVariable>,
}

/// One day.
const MAX_SECS: u64 = 86_400;

/// The keys of the file.
#[derive(Deserialize)]
#[serde(default)]
struct McpTable {
    command: Option<Written>,
    args: Vec<Written>,
    env: BTreeMap<String, Secret>,
    url: Option<Written>,
    headers: BTreeMap<String, Secret>,
    enabled: bool,
    auto_restart: bool,
    #[serde(deserialize_with = "within::<1, MAX_SECS, _, _>")]
    timeout_secs: u64,
    #[serde(deserialize_with = "within::<1, MAX_SECS, _, _>")]
    idle_secs: u64,
    trust: McpTrust,
    oauth: McpOauth,
}

impl Default for McpTable {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            url: None,
            headers: BTreeMap::new(),
            enabled: true,
            auto_restart: true,
            // Most tools answer in seconds; one that shows progress may take longer.
            timeout_secs: 60,
            // A conversation with shorter pauses does not wait for the server's start.
            idle_secs: 300,
            trust: McpTrust::default(),
            oauth: McpOauth::default(),
        }
    }
}

impl TryFrom<McpTable> for Mcp {
    type Error = &'static str;

    fn try_from(table: McpTable) -> Result<Self, &'static str> {
        let transport = match (table.command, table.url) {
            (Some(command), None) if table.headers.is_empty() => McpTransport::Stdio {
                command,
                args: table.args,
                env: table.env,
            },
            (None, Some(url)) if table.args.is_empty() && table.env.is_empty() => {
                McpTransport::Http {
                    url,
                    headers: table.headers,
                }
            }
            (Some(_), None) => return Err("headers belong to a url: a program takes env"),
            (None, Some(_)) => return Err("args and env belong to a command: a url takes headers"),
            (Some(_), Some(_)) => {
                return Err(
                    "command and url are both set: keep command (a program) or url (a server)",
                );
            }
            (None, None) => return Err("expected command (a program) or url (a server)"),
        };
        Ok(Self {
            name: String::new(),
            transport,
            enabled: table.enabled,
            auto_restart: table.auto_restart,
            timeout_secs: table.timeout_secs,
            idle_secs: table.idle_secs,
            trust: table.trust,
            oauth: table.oauth,
            missing: None,
        })
    }
}

impl Named for Mcp {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}

/// `[mcp.NAME.oauth]`: for servers that require a manually registered client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct McpOauth {
    /// The client's id at the server; an empty one is registered dynamically.
    pub client_id: String,
    /// The client's secret, if it has one; see [`Self::secret`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The file with the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// How the client logs in.
    pub grant: McpGrant,
    /// Requested scopes; if empty, those that the server names.
    #[serde(deserialize_with = "list")]
    pub scopes: Vec<String>,
}

/// How the client logs in to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client logs in with its secret, without a person.
    ClientCredentials,
}

impl McpOauth {
    /// The secret for the server `name`: from the file or environment, or from the secret's own
    /// file, which is read at each call so that a change takes effect.
    ///
    /// # Errors
    /// The file cannot be read or is empty.
    pub fn secret(&self, name: &str) -> Result<Option<Secret>, Error> {
        let Some(path) = &self.client_secret_file else {
            return Ok(self.client_secret.clone());
        };
        read_key(path, format!("mcp.{name}.oauth.client_secret_file")).map(Some)
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether annotations of a server's tools are trusted (COMP-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpTrust {
    /// Annotations are ignored.
    #[default]
    None,
    /// Tools that declare themselves read-only do not ask owners.
    Annotations,
}

impl McpTrust {
    /// The name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Annotations => "annotations",
        }
    }
}

/// How to connect to an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum McpTransport {
    /// A program, connected by its standard streams.
    Stdio {
        /// The program.
        command: Written,
        /// Its arguments.
        args: Vec<Written>,
        /// Its environment beside the allowed variables; values may be credentials.
        env: BTreeMap<String, Secret>,
    },
    /// A server, connected by HTTP.
    Http {
        /// Its address.
        url: Written,
        /// Headers of every request; their values may be credentials.
        headers: BTreeMap<String, Secret>,
    },
}
