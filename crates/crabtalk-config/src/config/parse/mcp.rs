//! Servers of MCP, as `config.toml` has them.

use super::{Reader, check_names};
use crate::config::expand::MissingVariable;
use crate::config::{Mcp, McpGrant, McpOauth, McpTransport, McpTrust};
use crate::reader::Section;
use crate::{Error, Secret, Written};

/// Most tools answer in seconds; one that shows progress may take longer.
const MCP_TIMEOUT_SECS: u64 = 60;

/// A conversation that pauses for less finds its servers warm.
const MCP_IDLE_SECS: u64 = 300;

/// A day: nobody means more.
const MAX_MCP_SECS: u64 = 86_400;

impl Reader<'_> {
    pub(super) fn mcps(&self, root: &mut Section<'_>) -> Result<Vec<Mcp>, Error> {
        let Some(section) = root.section("mcp")? else {
            return Ok(Vec::new());
        };
        check_names(&section)?;
        let entries = section.entries().iter();
        entries
            .map(|entry| self.mcp(&entry.key, section.below(entry)?))
            .collect()
    }

    fn mcp(&self, name: &str, mut section: Section<'_>) -> Result<Mcp, Error> {
        let mut missing = None;
        let url = self.url(&mut section, "url", &mut missing)?;
        let transport = match (section.take("command"), url) {
            (Some(entry), None) => McpTransport::Stdio {
                command: self.expanded(&section, entry, "command", &mut missing)?,
                args: self.args(&mut section, &mut missing)?,
                env: self.secrets(&mut section, "env", &mut missing)?,
            },
            (None, Some(url)) => McpTransport::Http {
                url,
                headers: self.secrets(&mut section, "headers", &mut missing)?,
            },
            (Some(entry), Some(_)) => {
                let message = "there is a url too: keep command (a program) or url (a server)";
                return section.fail(entry.at, "command", message);
            }
            (None, None) => {
                let message = "missing, expected command (a program) or url (a server)";
                return section.fail(section.at, "command", message);
            }
        };
        let is_http = matches!(transport, McpTransport::Http { .. });
        let mcp = Mcp {
            name: name.to_owned(),
            transport,
            enabled: section.boolean("enabled")?.unwrap_or(true),
            auto_restart: section.boolean("auto_restart")?.unwrap_or(true),
            timeout_secs: section
                .whole("timeout_secs", 1, MAX_MCP_SECS)?
                .unwrap_or(MCP_TIMEOUT_SECS),
            idle_secs: section
                .whole("idle_secs", 1, MAX_MCP_SECS)?
                .unwrap_or(MCP_IDLE_SECS),
            trust: section.choice("trust", &McpTrust::ALL)?.unwrap_or_default(),
            oauth: self.oauth(&mut section, is_http, &mut missing)?,
            missing,
        };
        section.finish();
        Ok(mcp)
    }

    fn oauth(
        &self,
        section: &mut Section<'_>,
        is_http: bool,
        missing: &mut Option<MissingVariable>,
    ) -> Result<McpOauth, Error> {
        let Some(mut table) = section.section("oauth")? else {
            return Ok(McpOauth::default());
        };
        let mut text = |key: &'static str| match table.take(key) {
            Some(entry) => {
                let written = self.expanded(&table, entry, key, missing)?;
                Ok(written.value().to_owned())
            }
            None => Ok(String::new()),
        };
        let (client_id, secret) = (text("client_id")?, text("client_secret")?);
        let client_secret_file = match table.take("client_secret_file") {
            Some(entry) if !secret.is_empty() => {
                let message = "there is a client_secret already: keep one of the two";
                return table.fail(entry.at, "client_secret_file", message);
            }
            Some(entry) => Some(self.path(&table.text("client_secret_file", &entry.node)?)),
            None => None,
        };
        let grant = table.choice("grant", &McpGrant::ALL)?.unwrap_or_default();
        let oauth = McpOauth {
            client_id,
            client_secret: Some(Secret::new(secret)).filter(|s| !s.expose().is_empty()),
            client_secret_file,
            grant,
            scopes: table.strings("scopes")?.unwrap_or_default(),
        };
        // A variable that is not set has its own words.
        let has_secret = oauth.client_secret.is_some() || oauth.client_secret_file.is_some();
        let is_whole = !oauth.client_id.is_empty() && has_secret;
        let is_alone = grant == McpGrant::ClientCredentials;
        if is_alone && missing.is_none() && !(is_whole && is_http) {
            let message = "a client that logs in by itself needs a client_id, a client_secret or client_secret_file, and a server with a url";
            return table.fail(table.at, "grant", message);
        }
        table.finish();
        Ok(oauth)
    }

    fn args(
        &self,
        section: &mut Section<'_>,
        missing: &mut Option<MissingVariable>,
    ) -> Result<Vec<Written>, Error> {
        let args = section.exact_strings("args")?;
        let owner = section.path().to_owned();
        Ok(args
            .into_iter()
            .map(|arg| self.written(arg, &owner, "args", missing))
            .collect())
    }
}
