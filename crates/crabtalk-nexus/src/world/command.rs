//! What ADMIN can say, and what is answered.

use super::{Entry, Task, TaskChange};
use crate::agent::State;
use crate::backend::Prompt;
use crate::mail::Mail;
use crate::name::Name;
use clap::Subcommand;
use serde::{Deserialize, Serialize};

/// A command of ADMIN. The command line has those that are not skipped just as they
/// are here, with what is said of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// How everybody is.
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
    /// The tasks, open, assigned and done.
    Tasks,
    /// ADMIN's mail; what was read goes away.
    Inbox {
        /// Keep what is shown.
        #[arg(long)]
        keep: bool,
    },
    /// ADMIN's mail up to this letter was read, and goes away.
    #[command(skip)]
    Read { upto: u64 },
    /// Yes.
    #[command(skip)]
    Approve { agent: Name, prompt: Option<String> },
    /// Yes, for good.
    #[command(skip)]
    ApproveAlways { agent: Name, prompt: Option<String> },
    /// An answer to a question.
    #[command(skip)]
    Answer {
        agent: Name,
        prompt: Option<String>,
        text: String,
    },
    /// No.
    #[command(skip)]
    Deny {
        agent: Name,
        prompt: Option<String>,
        reason: String,
    },
    /// Start an agent.
    Start {
        /// Which.
        agent: Name,
    },
    /// End an agent.
    Stop {
        /// Which.
        agent: Name,
    },
    /// End an agent and start it again; its mail is kept.
    Restart {
        /// Which.
        agent: Name,
    },
    /// Give an agent, or all, nothing new.
    Pause {
        /// Which; all else.
        agent: Option<Name>,
    },
    /// Let an agent, or all, go on.
    Resume {
        /// Which; all else.
        agent: Option<Name>,
    },
    /// Look into its silence, or do not.
    #[command(skip)]
    Monitor { agent: Name, on: bool },
    /// Call a compression off, or end the turn in flight.
    Cancel {
        /// Whose.
        agent: Name,
    },
    /// Have an agent's context compressed.
    Compress {
        /// Whose.
        agent: Name,
        /// Cancel the turn in flight for it.
        #[arg(long)]
        force: bool,
    },
    /// Read nexus.toml again; agents go on.
    Reload,
    /// How everybody is, and what happened behind this one of the last entries, which
    /// is 0 at first, then as [`Answer::Board`] told it.
    #[command(skip)]
    Board { after: u64 },
    /// The same, again each time that something happened.
    #[command(skip)]
    Watch,
    /// What one would see of it.
    #[command(skip)]
    Look { agent: Name },
}

/// What a command is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// It is done, or on its way: what, in a line.
    Done { said: String },
    /// It is not done.
    Refused { why: String },
    /// How everybody is.
    Status {
        agents: Vec<AgentLine>,
        /// Letters for ADMIN.
        inbox: usize,
        /// Open and assigned tasks.
        tasks: usize,
    },
    /// How everybody is, and what happened.
    Board {
        agents: Vec<AgentLine>,
        /// Letters for ADMIN.
        inbox: usize,
        /// Open and assigned tasks.
        tasks: usize,
        /// Why nothing is done, if the log cannot be written.
        held: Option<String>,
        /// Up to where entries were told.
        seen: u64,
        /// What happened, each in short.
        entries: Vec<Entry>,
    },
    /// The tasks, by number.
    Tasks { tasks: Vec<(u64, Task)> },
    /// ADMIN's mail, by number.
    Inbox { letters: Vec<(u64, Mail)> },
    /// What one would see of an agent.
    Look {
        /// As plain text.
        text: String,
        /// What brings a person there.
        attach: Vec<String>,
    },
}

/// An agent in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLine {
    pub name: Name,
    pub state: State,
    /// Since when, in milliseconds before now.
    pub for_ms: u64,
    /// Letters that wait.
    pub queue: usize,
    /// The kind of terminal agent; empty for one of the daemon.
    #[serde(default)]
    pub kind: String,
    /// Tokens that its context holds.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Tokens that its model reads at most.
    #[serde(default)]
    pub window: Option<u64>,
    /// Percent of the window that is used.
    pub percent: Option<u64>,
    /// Turns since the session began.
    pub turns: u64,
    /// `monitor off`, `held`, `paused`, `not committed`.
    pub flags: Vec<String>,
    /// Why it is where it is.
    pub note: String,
    /// The last message to it or from it.
    #[serde(default)]
    pub last: String,
    /// What it waits for, in words; empty if for nothing.
    #[serde(default)]
    pub waits_for: String,
    /// Whether it waits for ADMIN.
    #[serde(default)]
    pub for_admin: bool,
    /// Whether that is longer than what is told here.
    #[serde(default)]
    pub is_cut: bool,
    /// What it waits for, if ADMIN has to say.
    pub waits: Option<Prompt>,
}
