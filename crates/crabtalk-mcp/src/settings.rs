//! The settings of a server.
//!
//! Invariants: settings that differ, even only in a credential, are different servers;
//! `Debug` shows no value of an environment variable or header.

use crate::oauth::OAuthClient;
use crabtalk_component::PortFile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Timeout of a call without progress.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle time after which a program is ended.
pub(crate) const DEFAULT_IDLE: Duration = Duration::from_secs(300);

/// The source of a server's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `[mcp.NAME]`.
    Config,
    /// `run/NAME.port`.
    PortFile,
}

impl Source {
    /// The name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::PortFile => "port file",
        }
    }
}

/// Whether the annotations of tools are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Annotations are ignored.
    #[default]
    None,
    /// Tools annotated as read-only need no approval by owners.
    Annotations,
}

/// How to connect to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program, connected by its standard streams.
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Additional variables; they may be credentials.
        env: BTreeMap<String, String>,
    },
    /// A server at an address.
    Url {
        /// The address.
        url: String,
        /// Headers of every request; they may be credentials.
        headers: BTreeMap<String, String>,
    },
    /// A component on this machine, announced by a port file.
    Port(PortFile),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, env, .. } => {
                let names: Vec<&String> = env.keys().collect();
                write!(f, "Program({command:?}, env {names:?})")
            }
            Self::Url { headers, .. } => {
                let names: Vec<&String> = headers.keys().collect();
                write!(f, "Url(headers {names:?})")
            }
            Self::Port(port) => write!(f, "Port({port:?})"),
        }
    }
}

impl Transport {
    /// `stdio` or `http`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Program { .. } => "stdio",
            Self::Url { .. } | Self::Port(_) => "http",
        }
    }
}

/// The settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: Source,
    /// How to connect to the server.
    pub transport: Transport,
    /// Whether the server is enabled.
    pub enabled: bool,
    /// Whether to reconnect after the connection ended.
    pub auto_restart: bool,
    /// Timeout of a call without progress.
    pub timeout: Duration,
    /// Idle time after which a program is ended.
    pub idle: Duration,
    /// Whether the annotations of its tools are trusted.
    pub trust: Trust,
    /// The OAuth client, if one was registered manually.
    pub oauth: OAuthClient,
    /// The reason why the settings are invalid; empty if they are valid.
    pub unusable: String,
}

impl Settings {
    /// A server with default limits.
    pub fn new(name: impl Into<String>, source: Source, transport: Transport) -> Self {
        Self {
            name: name.into(),
            source,
            transport,
            enabled: true,
            auto_restart: true,
            timeout: DEFAULT_TIMEOUT,
            idle: DEFAULT_IDLE,
            trust: Trust::None,
            oauth: OAuthClient::default(),
            unusable: String::new(),
        }
    }

    /// Whether the server is a program, which is started on demand.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(self.transport, Transport::Program { .. })
    }

    /// Hash of the settings that its tools depend on, without credentials.
    pub(crate) fn print(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        match &self.transport {
            Transport::Program { command, args, env } => {
                add(command);
                args.iter().for_each(|arg| add(arg));
                env.keys().for_each(|name| add(name));
            }
            Transport::Url { url, headers } => {
                add(url);
                headers.keys().for_each(|name| add(name));
            }
            Transport::Port(_) => {}
        }
        hex(&hash.finalize())
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(env: &[(&str, &str)]) -> Settings {
        let env = env.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        let transport = Transport::Program {
            command: "x".into(),
            args: vec!["--key=1".into()],
            env: env.collect(),
        };
        Settings::new("x", Source::Config, transport)
    }

    #[test]
    fn credentials_distinguish_servers_and_are_hidden() {
        let (one, other) = (program(&[("KEY", "s3cret")]), program(&[("KEY", "other")]));
        assert_ne!(one, other);
        assert_eq!(one.print(), other.print(), "no credential is in the print");
        assert_ne!(one.print(), program(&[]).print());
        let shown = format!("{one:?}");
        assert!(
            shown.contains("KEY") && !shown.contains("s3cret"),
            "{shown}"
        );
    }
}
