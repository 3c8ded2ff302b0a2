//! `config.toml` as values.
//!
//! Invariant: a `Config` is complete, every default is in it; it does not
//! change, a reload makes a new one.

mod expand;
mod models;
mod parse;
mod provider;
mod remote;
mod sections;

pub use expand::MissingVariable;
pub use provider::{
    Mcp, McpGrant, McpOauth, McpTransport, McpTrust, Model, Price, Provider, ProviderKind,
};
pub use remote::{TCP_PORT, Tcp, TcpTls, Token, TokenHash, TokenRole, end_of};

use crate::file::read_limited;
use crate::{Env, Error, Secret, Warning};
use crabtalk_domain::Mode;
use crabtalk_domain::storage::{RecallScope, SyncPolicy};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Largest configuration file; the largest real ones have a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// The node's configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// The agent of a message that names none.
    pub default_agent: String,
    /// The node's active model.
    pub model: Option<String>,
    /// Senders with the owner's authority.
    pub owners: Vec<String>,
    /// Model providers, in the file's order.
    #[serde(serialize_with = "provider::by_name")]
    pub provider: Vec<Provider>,
    /// MCP servers, in the file's order.
    #[serde(serialize_with = "provider::by_name")]
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
    /// `[tcp]`; without it nothing listens beside the Unix socket.
    pub tcp: Option<Tcp>,
    /// Who may come in over it, in the file's order.
    #[serde(serialize_with = "provider::by_name")]
    pub token: Vec<Token>,
}

/// How the command line behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cli {
    /// Whose conversation a person is in (CONV-11).
    pub project: ProjectMode,
    /// What the chat's terminal writes on.
    pub theme: Theme,
    /// Which keys edit in the chat.
    pub keys: Keys,
}

/// Whether the folder decides which conversation a person is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectMode {
    /// In a git work tree people speak as `user/FOLDER`.
    Auto,
    /// They speak as `user` everywhere.
    Off,
}

/// What the chat's terminal writes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// As the terminal says.
    Auto,
    /// Dark letters on light.
    Light,
    /// Light letters on dark.
    Dark,
    /// Whatever it is, the terminal's own colours.
    Plain,
}

/// Which keys edit in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// As in most shells.
    Emacs,
    /// Commands of vi behind Esc.
    Vi,
}

/// How cron entries run (CRON-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cron {
    /// Runs of entries at a time; what is due beside waits for its turn.
    pub at_once: u32,
    /// Failures in a row that pause an entry; 0 is never.
    pub pause_after: u32,
    /// Entries that one agent may make for itself.
    pub per_agent: u32,
}

/// Who is told of what happens while nobody looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notify {
    /// A command of the shell, which gets what there is to say as JSON.
    pub command: Option<String>,
    /// An address that gets the same; it may hold a secret.
    pub url: Option<Secret>,
    /// Seconds until either is given up.
    pub timeout_secs: u32,
}

/// What is remembered and recalled (MEM-1, MEM-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Whether there is a memory at all.
    pub enabled: bool,
    /// Entries of one recall.
    pub recall_limit: u32,
    /// Whether agents may edit `Crab.md`.
    pub soul_editable: bool,
    /// Whose archives are recalled.
    pub recall_scope: RecallScope,
    /// The component or MCP server that remembers in place of the built-in
    /// memory; its tools are `recall`, `remember` and `forget`.
    pub provider: Option<String>,
}

/// How conversations are kept (STORE-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// When writes are synced to the disk.
    pub sync: SyncPolicy,
    /// Days until what was removed, and old outputs of tools, are swept; 0 is
    /// never.
    pub trash_days: u32,
}

/// How runs behave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// Whether to look for local model servers (MODEL-6).
    pub detect: bool,
    /// What happens to a run that a crash cut off (STORE-7).
    pub resume: Resume,
    /// Seconds until an ask in the owner's inbox is denied (GATE-4).
    pub ask_timeout_secs: u64,
    /// The mode of agents whose files name none; never `full` (GATE-2).
    pub mode: Option<Mode>,
    /// Whether providers are connected to while a message is typed (MODEL-8).
    pub prewarm: bool,
}

/// What a sandboxed command may reach beside its working folder (GATE-5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Sandbox {
    /// Whether it may talk to the network.
    pub network: bool,
    /// Opened for reading; absolute.
    pub read: Vec<PathBuf>,
    /// Opened for changes; absolute.
    pub write: Vec<PathBuf>,
}

/// What happens to a run that a crash cut off (STORE-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resume {
    /// It is recorded, and the returning client is told.
    Report,
    /// The daemon carries it on.
    Auto,
}

/// Bounds of the node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// Runs that wait in one conversation (CONV-3).
    pub queued_runs: u32,
    /// Cron entries (CRON-1).
    pub crons: u32,
    /// Event subscriptions (BUS-1).
    pub subscriptions: u32,
    /// Client connections at once (WIRE-9).
    pub connections: u32,
    /// Events that cause events (BUS-1).
    pub chain_depth: u32,
    /// Delegations within delegations (RUN-9).
    pub delegate_depth: u32,
    /// Bytes of one answer of a model: text, thinking and arguments together
    /// (MODEL-9).
    pub answer_bytes: u32,
    /// Tool calls of one answer (MODEL-9).
    pub answer_calls: u32,
    /// Seconds from a request to the end of its answer (MODEL-9).
    pub answer_secs: u64,
    /// Bytes of the schemas of MCP tools above which a model gets names alone,
    /// and looks for the rest.
    pub tool_schema_bytes: u32,
    /// Tokens of the node in a day (MODEL-7).
    pub tokens_per_day: Option<u64>,
    /// Money of the node in a day, in the unit of the prices (MODEL-7).
    pub money_per_day: Option<f64>,
}

/// Which skills there are (SKILL-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skills {
    /// Whether `~/.claude/skills` is read too.
    pub import: bool,
    /// Further folders of skills, in their order; absolute or from `~`.
    pub paths: Vec<String>,
    /// Skills that are switched off.
    pub disabled: Vec<String>,
}

impl Config {
    /// Reads a configuration text. `file` names it in messages.
    pub fn parse(text: &str, file: &Path, env: &Env<'_>) -> Result<(Self, Vec<Warning>), Error> {
        parse::parse(text, file, env)
    }

    /// Reads the configuration file; without one every value is the default.
    pub fn load(file: &Path, env: &Env<'_>) -> Result<(Self, Vec<Warning>), Error> {
        let text = read_limited(file, MAX_CONFIG_BYTES)?.unwrap_or_default();
        Self::parse(&text, file, env)
    }

    /// The effective configuration, secrets masked (`GetConfig`).
    pub fn effective_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("string keys and finite numbers are JSON")
    }
}

#[cfg(test)]
mod tests;
