//! What is known of a server before it is talked to: its identity.
//!
//! Invariant: two settings that differ, be it in a credential, are two servers.
//! `Debug` shows no value of an environment or a header.

use crate::oauth::OAuthClient;
use crabtalk_component::PortFile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A call that says nothing for so long has failed.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A program that nobody calls for so long is ended.
pub(crate) const DEFAULT_IDLE: Duration = Duration::from_secs(300);

/// Where a server is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `[mcp.NAME]`.
    Config,
    /// `run/NAME.port`.
    PortFile,
}

impl Source {
    /// As lists have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::PortFile => "port file",
        }
    }
}

/// Whether what a server says of its tools decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// It does not.
    #[default]
    None,
    /// Tools that say they only read need no question for owners.
    Annotations,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program of its own, over its standard streams.
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the usual ones; they may be credentials.
        env: BTreeMap<String, String>,
    },
    /// An address.
    Url {
        /// Where.
        url: String,
        /// Headers of every request; they may be credentials.
        headers: BTreeMap<String, String>,
    },
    /// A component on this machine, as its port file says.
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

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Where it is known from.
    pub source: Source,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether it is connected or started again after it has died.
    pub auto_restart: bool,
    /// How long a call may say nothing.
    pub timeout: Duration,
    /// How long a program that nobody calls goes on.
    pub idle: Duration,
    /// Whether its annotations decide anything.
    pub trust: Trust,
    /// As whom a person logs in to it, where that is not found out on the fly.
    pub oauth: OAuthClient,
    /// Why it cannot be used as it is configured; empty if it can.
    pub unusable: String,
}

impl Settings {
    /// A server with the usual limits.
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

    /// Whether it is a program that is only started when somebody calls.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(self.transport, Transport::Program { .. })
    }

    /// Names what its list of tools depends on, without a credential in it.
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

/// As digits.
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
    fn another_credential_is_another_server_and_is_shown_nowhere() {
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
