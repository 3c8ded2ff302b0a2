//! Reads what users write for CrabTalk: the home folder, `config.toml` and agent files with
//! positions, edited with their comments kept, and skills.
//!
//! ```text
//! home    the paths below $CRABTALK_HOME (OPS-5)
//! config  the values of config.toml, defaults included
//! agent   config/agents/NAME.md: frontmatter and prompt
//! edit    changes to config.toml that keep comments and detect concurrent changes (OPS-4)
//! skills  folders with a `SKILL.md`
//! ```
//!
//! Invariants: callers pass the environment in; no secret appears in `Debug`, in an error
//! or in [`Config::effective_json`]; every file has a size limit.

mod error;
mod name;
mod secret;
mod tree;
mod values;

mod agent;
mod config;
mod edit;
mod file;
mod home;

pub mod skills;

pub use agent::{AgentEntry, AgentFile, AgentSettings, CompactThreshold, load_agents};
pub use config::{
    Cli, Config, Cron, Keys, Limits, Mcp, McpGrant, McpOauth, McpTransport, McpTrust, Memory,
    MissingVariable, Model, Notify, Price, ProjectMode, Provider, ProviderKind, Resume, Runs,
    Sandbox, Skills, Storage, TCP_PORT, Tcp, TcpTls, Theme, Token, TokenHash, TokenRole, end_of,
};
pub use crabtalk_domain::Permission;
pub use edit::{ConfigFile, parse_section, section_text};
pub use error::{Diagnostic, Error, UnknownKey, Warning, nearest};
pub use file::{read_limited, write_atomic};
pub use home::{Env, Home};
pub use name::{check_name, is_name};
pub use secret::{MASK, Secret, Written};
