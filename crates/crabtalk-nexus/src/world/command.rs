//! What ADMIN can say, and what is answered.

use super::{Entry, Task};
use crate::agent::State;
use crate::mail::Mail;
use crate::name::Name;
use crabtalk_backend::Prompt;
use serde::{Deserialize, Serialize};

/// A command of ADMIN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// How everybody is.
    Status,
    /// Speak: `@AGENT [TOPIC]: text`.
    Send {
        /// The message.
        text: String,
    },
    /// Put a task into the queue: `@AGENT [TOPIC]: text`, or `@ANY`.
    AddTask {
        /// The task.
        text: String,
    },
    /// The tasks.
    Tasks,
    /// ADMIN's mail; what was read goes away.
    Inbox {
        /// Whether it stays.
        keep: bool,
    },
    /// ADMIN's mail up to this letter was read, and goes away.
    Read {
        /// Its number.
        upto: u64,
    },
    /// Yes.
    Approve {
        /// To whom.
        agent: Name,
        /// To which prompt.
        prompt: Option<String>,
    },
    /// Yes, for good.
    ApproveAlways {
        /// To whom.
        agent: Name,
        /// To which prompt.
        prompt: Option<String>,
    },
    /// An answer to a question.
    Answer {
        /// To whom.
        agent: Name,
        /// To which question.
        prompt: Option<String>,
        /// What.
        text: String,
    },
    /// No.
    Deny {
        /// To whom.
        agent: Name,
        /// To which prompt.
        prompt: Option<String>,
        /// Why.
        reason: String,
    },
    /// Run it.
    Start {
        /// Whom.
        agent: Name,
    },
    /// End it.
    Stop {
        /// Whom.
        agent: Name,
    },
    /// End it and run it again.
    Restart {
        /// Whom.
        agent: Name,
    },
    /// Nothing new for it, or all.
    Pause {
        /// Whom; all if absent.
        agent: Option<Name>,
    },
    /// Go on.
    Resume {
        /// Whom; all if absent.
        agent: Option<Name>,
    },
    /// Look into its silence, or do not.
    Monitor {
        /// Whose.
        agent: Name,
        /// Whether.
        on: bool,
    },
    /// No compression; or its turn ends.
    Cancel {
        /// Whose.
        agent: Name,
    },
    /// Compress it.
    Compress {
        /// Whom.
        agent: Name,
        /// Without waiting for the end of its turn.
        force: bool,
    },
    /// How everybody is, and what happened behind this one of the last entries.
    Board {
        /// As [`Answer::Board`] told it; 0 at first.
        after: u64,
    },
    /// The same, again each time that something happened.
    Watch,
    /// What one would see of it.
    Look {
        /// Whom.
        agent: Name,
    },
}

/// What a command is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// It is done, or on its way.
    Done {
        /// What, in a line.
        said: String,
    },
    /// It is not done.
    Refused {
        /// Why.
        why: String,
    },
    /// How everybody is.
    Status {
        /// The agents.
        agents: Vec<AgentLine>,
        /// Letters for ADMIN.
        inbox: usize,
        /// Open and assigned tasks.
        tasks: usize,
    },
    /// How everybody is, and what happened.
    Board {
        /// The agents.
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
    /// The tasks.
    Tasks {
        /// By number.
        tasks: Vec<(u64, Task)>,
    },
    /// ADMIN's mail.
    Inbox {
        /// By number.
        letters: Vec<(u64, Mail)>,
    },
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
    /// Who.
    pub name: Name,
    /// Where.
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
    /// `monitor off`, `held`, `paused`.
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
