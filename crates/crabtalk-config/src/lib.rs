//! Typed configuration of CrabTalk: the home folder, `config.toml` and agent
//! files, read with positions and edited with their comments kept.
//!
//! ```text
//! home    where everything lives under $CRABTALK_HOME (OPS-5)
//! config  config.toml as values, with defaults, secrets masked when shown
//! agent   config/agents/NAME.md: frontmatter and prompt
//! edit    changes to config.toml that keep comments and notice rivals (OPS-4)
//! ```
//!
//! Invariants: nothing here reads the environment by itself, every lookup is
//! handed in; no value that came from a secret appears in `Debug`, in an error
//! or in [`Config::effective_json`]; every file has a size limit.
//!
//! Absent: anything of the protocol, of tokio, of the other crates.

mod error;
mod name;
mod reader;
mod secret;
mod system;
mod tree;

mod agent;
mod config;
mod edit;
mod file;
mod home;

pub use agent::{AgentEntry, AgentFile, AgentSettings, AgentText, CompactThreshold, load_agents};
pub use config::{
    Cli, Config, Limits, Mcp, McpGrant, McpOauth, McpTransport, McpTrust, Memory, MissingVariable,
    Model, Price, ProjectMode, Provider, ProviderKind, Resume, Runs, Sandbox, Skills, Storage,
    TCP_PORT, Tcp, TcpTls, Token, TokenHash, TokenRole, end_of,
};
pub use crabtalk_domain::Permission;
pub use edit::{ConfigFile, parse_section, section_text};
pub use error::{Diagnostic, Error, UnknownKey, Warning, nearest};
pub use file::{read_limited, write_atomic};
pub use home::{Env, Home};
pub use name::{check_name, is_name};
pub use secret::{MASK, Secret, Written};
