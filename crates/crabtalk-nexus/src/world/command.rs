//! Commands of ADMIN, and their answers.

use super::{Entry, Task, TaskChange};
use crate::agent::State;
use crate::backend::{Prompt, Reply};
use crate::mail::Mail;
use crate::name::Name;
use clap::Subcommand;
use serde::{Deserialize, Serialize};

/// A command of ADMIN. The command line has those that are not skipped just as they
/// are here, with what is said of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Show the state of the team.
    Status,
    /// Speak: `@AGENT [TOPIC]: text`.
    #[command(skip)]
    Send { text: String },
    /// Put a task into the queue: `@AGENT [TOPIC]: text`, or `@ANY`.
    #[command(skip)]
    AddTask { text: String },
    /// End a task, give it to another agent, or remove it.
    #[command(skip)]
    ChangeTask { id: u64, change: TaskChange },
    /// Show the open, assigned and done tasks.
    Tasks,
    /// Show ADMIN's mail and mark it as read.
    Inbox {
        /// Leave the mail unread.
        #[arg(long)]
        keep: bool,
    },
    /// ADMIN's mail up to this letter was read, and goes away.
    #[command(skip)]
    Read { upto: u64 },
    /// The answer to the prompt of this id or the oldest, or about the compression.
    #[command(skip)]
    Reply {
        agent: Name,
        prompt: Option<String>,
        reply: Reply,
    },
    /// Start an agent.
    Start {
        /// The agent.
        agent: Name,
    },
    /// Stop an agent.
    Stop {
        /// The agent.
        agent: Name,
    },
    /// Restart an agent; its mail is kept.
    Restart {
        /// The agent.
        agent: Name,
    },
    /// Pause an agent, or all: new messages wait.
    Pause {
        /// The agent; all by default.
        agent: Option<Name>,
    },
    /// Resume an agent, or all.
    Resume {
        /// The agent; all by default.
        agent: Option<Name>,
    },
    /// Cancel a compression, or the turn in flight.
    Cancel {
        /// The agent.
        agent: Name,
    },
    /// Compress an agent's context.
    Compress {
        /// The agent.
        agent: Name,
    },
    /// Reload nexus.toml; agents continue.
    Reload,
    /// The state of the team and the entries after this number, which is 0 at first and
    /// then [`Answer::Board`]'s `seen`.
    #[command(skip)]
    Board { after: u64 },
    /// The same after each change.
    #[command(skip)]
    Watch,
    /// The screen or history of an agent.
    #[command(skip)]
    Look { agent: Name },
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// Done or begun, described in one line.
    Done { said: String },
    /// Refused, with the reason.
    Refused { why: String },
    /// The state of the team.
    Status {
        agents: Vec<AgentLine>,
        /// Number of letters for ADMIN.
        inbox: usize,
        /// Number of open and assigned tasks.
        tasks: usize,
    },
    /// The state of the team, and new entries.
    Board {
        agents: Vec<AgentLine>,
        /// Number of letters for ADMIN.
        inbox: usize,
        /// Number of open and assigned tasks.
        tasks: usize,
        /// The number of the last entry.
        seen: u64,
        /// New entries, shortened.
        entries: Vec<Entry>,
    },
    /// The tasks, by number.
    Tasks { tasks: Vec<(u64, Task)> },
    /// ADMIN's mail, by number.
    Inbox { letters: Vec<(u64, Mail)> },
    /// The screen or history of an agent.
    Look {
        /// The plain text.
        text: String,
        /// The command that attaches to the agent.
        attach: Vec<String>,
    },
}

/// The state of an agent in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLine {
    pub name: Name,
    pub state: State,
    /// Duration of the state in milliseconds.
    pub for_ms: u64,
    /// Number of queued letters.
    pub queue: usize,
    /// The kind of terminal agent; empty for an agent of the daemon.
    #[serde(default)]
    pub kind: String,
    /// Tokens in its context.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Its model's context window in tokens.
    #[serde(default)]
    pub window: Option<u64>,
    /// Used part of the window in percent.
    pub percent: Option<u64>,
    /// Turns since the session began.
    pub turns: u64,
    /// `monitor off`, `held`, `paused`, `not committed`.
    pub flags: Vec<String>,
    /// The reason for its state.
    pub note: String,
    /// The last message to or from the agent.
    #[serde(default)]
    pub last: String,
    /// The reason for waiting, in words; empty if it does not wait.
    #[serde(default)]
    pub waits_for: String,
    /// Whether it waits for ADMIN.
    #[serde(default)]
    pub for_admin: bool,
    /// Whether the prompt is shortened here.
    #[serde(default)]
    pub is_cut: bool,
    /// The prompt that ADMIN has to answer.
    pub waits: Option<Prompt>,
}
