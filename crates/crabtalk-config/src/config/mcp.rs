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
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// How it is reached.
    #[serde(flatten)]
    pub transport: McpTransport,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether it is restarted after its end.
    pub auto_restart: bool,
    /// Seconds that a call may take without a sign of progress.
    pub timeout_secs: u64,
    /// Seconds without calls after which the program is ended.
    pub idle_secs: u64,
    /// The trust in annotations of its tools.
    pub trust: McpTrust,
    /// The client that logs in to it.
    #[serde(skip_serializing_if = "McpOauth::is_empty")]
    pub oauth: McpOauth,
    /// An unset variable that the server needs.
    #[serde(skip)]
    pub missing: Option<MissingVariable>,
}

/// A day.
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
            // A conversation that pauses for less finds its servers warm.
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

/// `[mcp.NAME.oauth]`: for servers where a client is registered by hand.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct McpOauth {
    /// The client's name there; an empty one is registered on the fly.
    pub client_id: String,
    /// Its secret, if it has one; see [`Self::secret`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The file with the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// The way to log in.
    pub grant: McpGrant,
    /// The requested scopes; none means those that the server names.
    #[serde(deserialize_with = "list")]
    pub scopes: Vec<String>,
}

/// The way to log in to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself, by its secret, without a person.
    ClientCredentials,
}

impl McpOauth {
    /// The secret of the server `name`: from the file or environment, or from its own file, which is read
    /// at each call so that a changed one counts.
    ///
    /// # Errors
    /// A file that cannot be read or is empty.
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

/// The trust in annotations of a server's tools (COMP-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpTrust {
    /// They are ignored.
    #[default]
    None,
    /// Owners are not asked before calls of tools that declare themselves read-only.
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

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum McpTransport {
    /// A program, over its standard streams.
    Stdio {
        /// The program.
        command: Written,
        /// Its arguments.
        args: Vec<Written>,
        /// Its environment beside the allowed one; the values may be credentials.
        env: BTreeMap<String, Secret>,
    },
    /// A server, over HTTP.
    Http {
        /// Its address.
        url: Written,
        /// Headers of every request; their values may be credentials.
        headers: BTreeMap<String, Secret>,
    },
}
