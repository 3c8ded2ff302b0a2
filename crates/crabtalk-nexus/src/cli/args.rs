//! The arguments of the command line.

use crate::name::Name;
use crate::world::{Command, TaskChange};
use clap::{Parser, Subcommand};

/// Supervise a team of agents.
#[derive(Debug, Parser)]
#[command(name = "crabtalk nexus", bin_name = "crabtalk nexus", version = crabtalk_client::VERSION)]
pub(super) struct Args {
    /// Print JSON.
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run NEXUS in the foreground.
    Run {
        /// Print lines instead of the board.
        #[arg(long)]
        lines: bool,
    },
    /// Write the configuration; run again to write the files of the team.
    Init,
    #[command(flatten)]
    Say(Command),
    /// Show the log.
    Log {
        /// Only entries about this agent.
        agent: Option<Name>,
        /// Number of entries.
        #[arg(short = 'n', long, default_value_t = 40)]
        count: usize,
    },
    /// Explain a log entry, or an agent's last actions.
    Explain {
        /// The number of an entry, or an agent's name.
        what: String,
    },
    /// Send a message as ADMIN: "@AGENT [TOPIC]: text".
    Send {
        /// The message.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Manage the queue of tasks.
    Task {
        #[command(subcommand)]
        what: Task,
    },
    /// Allow an agent's request or its compression, or answer its question.
    Approve {
        /// The agent.
        agent: Name,
        /// The answer to a question.
        #[arg(conflicts_with = "always", allow_negative_numbers = true)]
        answer: Vec<String>,
        /// Always allow such requests, if offered.
        #[arg(long)]
        always: bool,
        /// The id of the prompt; the oldest by default.
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Deny an agent's request or its compression.
    Deny {
        /// The agent.
        agent: Name,
        /// The reason, for the agent.
        reason: Vec<String>,
        /// The id of the prompt; the oldest by default.
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Show the board of a running NEXUS.
    Monitor,
    /// Attach to an agent's window or conversation.
    Attach {
        /// The agent.
        agent: Name,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Task {
    /// Add a task: "@AGENT [TOPIC]: text", or "@ANY .." for any free agent.
    Add {
        /// The task.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// List all tasks.
    List,
    /// Show one task with its whole text.
    Show {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
    },
    /// Mark a task as done.
    Done {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
        /// The result.
        result: Vec<String>,
    },
    /// Give a task to another agent, or to `ANY`.
    Reassign {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
        /// The agent, or `ANY`.
        to: Name,
    },
    /// Remove a task.
    Rm {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
    },
}

impl Task {
    pub(super) fn command(self) -> Command {
        let change = |id, change| Command::ChangeTask { id, change };
        match self {
            Self::Add { text } => Command::AddTask {
                text: text.join(" "),
            },
            Self::List | Self::Show { .. } => Command::Tasks,
            Self::Done { task, result } => change(task, TaskChange::Done(result.join(" "))),
            Self::Reassign { task, to } => {
                let to = (to != Name::any()).then_some(to);
                change(task, TaskChange::Reassign(to))
            }
            Self::Rm { task } => change(task, TaskChange::Remove),
        }
    }
}

/// The number of a task, written `t3` or `3`.
fn task_id(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('t').unwrap_or(text).parse();
    number.map_err(|_| "a task is named by its number, such as `t3`".into())
}
