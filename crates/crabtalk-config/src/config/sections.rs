//! The sections with a fixed set of keys, and their defaults.

use crate::Secret;
use crate::values::{list, within};
use crabtalk_domain::Mode;
use crabtalk_domain::storage::{RecallScope, SyncPolicy};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Settings of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cli {
    /// Whether the folder selects the conversation (CONV-11).
    pub project: ProjectMode,
    /// The chat's colours.
    pub theme: Theme,
    /// The chat's editing keys.
    pub keys: Keys,
}

/// Whether the folder selects the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectMode {
    /// In a git work tree the sender is `user/FOLDER`.
    #[default]
    Auto,
    /// The sender is `user` everywhere.
    Off,
}

/// The chat's colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// According to the background that the terminal reports.
    #[default]
    Auto,
    /// For a light background.
    Light,
    /// For a dark background.
    Dark,
    /// The terminal's own colours.
    Plain,
}

/// The chat's editing keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// The keys of most shells.
    #[default]
    Emacs,
    /// Commands of vi after Esc.
    Vi,
}

/// How cron entries run (CRON-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cron {
    /// Maximum concurrent runs of entries; further due entries wait.
    #[serde(deserialize_with = "within::<1, { u32::MAX as u64 }, _, _>")]
    pub at_once: u32,
    /// Consecutive failures that pause an entry; 0 means never.
    pub pause_after: u32,
    /// Maximum entries that one agent may create for itself.
    pub per_agent: u32,
}

impl Default for Cron {
    fn default() -> Self {
        Self {
            // Spreads many entries at midnight over the minutes that their runs take.
            at_once: 4,
            pause_after: 3,
            // Limits an agent that creates an entry in each run.
            per_agent: 10,
        }
    }
}

/// Notifications about events that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notify {
    /// A shell command that receives the notification as JSON.
    pub command: Option<String>,
    /// An address that receives the notification; it may contain a secret.
    pub url: Option<Secret>,
    /// Time limit of the command and of the request, in seconds.
    #[serde(deserialize_with = "within::<1, { u32::MAX as u64 }, _, _>")]
    pub timeout_secs: u32,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            command: None,
            url: None,
            // A command that hangs delays later notifications.
            timeout_secs: 30,
        }
    }
}

/// Memory and recall (MEM-1, MEM-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Whether memory is enabled.
    pub enabled: bool,
    /// Number of results of one recall.
    pub recall_limit: u32,
    /// Whether agents may edit `Crab.md`.
    pub soul_editable: bool,
    /// The archives that a recall searches.
    pub recall_scope: RecallScope,
    /// The component or MCP server that replaces the built-in memory, with the tools `recall`,
    /// `remember` and `forget`.
    pub provider: Option<String>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            enabled: true,
            // Enough to help, and few enough not to dominate the question.
            recall_limit: 5,
            soul_editable: false,
            recall_scope: RecallScope::default(),
            provider: None,
        }
    }
}

/// How conversations are stored (STORE-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// When writes are synced to the disk.
    pub sync: SyncPolicy,
    /// Days after which removed conversations and old tool outputs are deleted; 0 means never.
    pub trash_days: u32,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            sync: SyncPolicy::default(),
            // A month: long enough to notice that something is missing.
            trash_days: 30,
        }
    }
}

/// How runs behave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runs {
    /// Whether to detect local model servers (MODEL-6).
    pub detect: bool,
    /// Treatment of runs that a crash interrupted (STORE-7).
    pub resume: Resume,
    /// Seconds until an ask in the owner's inbox is denied (GATE-4).
    #[serde(deserialize_with = "within::<1, { u64::MAX }, _, _>")]
    pub ask_timeout_secs: u64,
    /// The mode of agents whose files name none; never `full` (GATE-2).
    pub mode: Option<Mode>,
    /// Whether to connect to providers while a message is typed (MODEL-8).
    pub prewarm: bool,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            detect: true,
            resume: Resume::default(),
            // A day: long enough for a person to return.
            ask_timeout_secs: 86_400,
            mode: None,
            prewarm: true,
        }
    }
}

/// Access of sandboxed commands in addition to their working folder (GATE-5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// Whether they may use the network.
    pub network: bool,
    /// Absolute paths that commands may read.
    pub read: Vec<PathBuf>,
    /// Absolute paths that commands may change.
    pub write: Vec<PathBuf>,
}

/// Treatment of runs that a crash interrupted (STORE-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resume {
    /// They are recorded and reported to the next client.
    #[default]
    Report,
    /// The daemon resumes them.
    Auto,
}

/// An answer is sent in one frame and stored in one line; half a frame allows for escaping.
const MAX_ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// One week.
const MAX_ANSWER_SECS: u64 = 7 * 86_400;

/// Limits of the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Runs that may queue in one conversation (CONV-3).
    pub queued_runs: u32,
    /// Number of cron entries (CRON-1).
    pub crons: u32,
    /// Number of event subscriptions (BUS-1).
    pub subscriptions: u32,
    /// Concurrent client connections (WIRE-9).
    #[serde(deserialize_with = "within::<1, { u32::MAX as u64 }, _, _>")]
    pub connections: u32,
    /// Length of a chain of events that cause events (BUS-1).
    pub chain_depth: u32,
    /// Depth of delegation (RUN-9).
    pub delegate_depth: u32,
    /// Bytes of a model's answer: text, thinking and arguments together (MODEL-9).
    #[serde(deserialize_with = "within::<1, MAX_ANSWER_BYTES, _, _>")]
    pub answer_bytes: u32,
    /// Tool calls in one answer (MODEL-9).
    #[serde(deserialize_with = "within::<1, { u32::MAX as u64 }, _, _>")]
    pub answer_calls: u32,
    /// Seconds from a request to the end of its answer (MODEL-9).
    #[serde(deserialize_with = "within::<1, MAX_ANSWER_SECS, _, _>")]
    pub answer_secs: u64,
    /// Bytes of MCP tool schemas above which requests contain only names.
    pub tool_schema_bytes: u32,
    /// Tokens per day of the node (MODEL-7).
    pub tokens_per_day: Option<u64>,
    /// Money per day of the node, in the unit of the prices (MODEL-7).
    pub money_per_day: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // More than a person queues, and enough for a gateway's burst.
            queued_runs: 32,
            // Stops a program that adds entries in a loop.
            crons: 1_000,
            subscriptions: 1_000,
            // Each uses a file descriptor.
            connections: 4_096,
            // Real chains of events have two or three links.
            chain_depth: 8,
            delegate_depth: 3,
            // Three times the output of a model that uses all of its 128,000 tokens.
            answer_bytes: 2 * 1024 * 1024,
            // The limit of the providers.
            answer_calls: 128,
            // Enough for a long answer by a slow model on a slow machine.
            answer_secs: 3_600,
            // About eight thousand tokens, repeated in every request.
            tool_schema_bytes: 32 * 1024,
            tokens_per_day: None,
            money_per_day: None,
        }
    }
}

/// Where skills are found (SKILL-1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Skills {
    /// Whether to read `~/.claude/skills`.
    pub import: bool,
    /// Further folders of skills, in order; absolute or beginning with `~`.
    #[serde(deserialize_with = "list")]
    pub paths: Vec<String>,
    /// Names of disabled skills.
    #[serde(deserialize_with = "list")]
    pub disabled: Vec<String>,
}
