//! `config/mcpd.toml`: the servers.

use anyhow::Context;
use crabtalk_component::Home;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(rename = "server", default)]
    servers: BTreeMap<String, Server>,
    #[serde(skip)]
    path: PathBuf,
}

/// A server and its command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// The path or name of the program.
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Additional variables.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Its working directory; the user's home by default.
    pub(crate) cwd: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn read(home: &Home) -> anyhow::Result<Self> {
        let path = home.path().join("config/mcpd.toml");
        let failed = || format!("cannot use {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(failed)?;
        let settings: Self = toml::from_str(&text).with_context(failed)?;
        Ok(Self { path, ..settings })
    }

    pub(crate) fn server(mut self, name: &str) -> anyhow::Result<Server> {
        let server = self.servers.remove(name);
        server.with_context(|| format!("{} has no [server.{name}]", self.path.display()))
    }
}
