//! What may stand on the command line.

use crate::name::Name;
use crate::world::{Command, TaskChange};
use clap::{Parser, Subcommand, ValueEnum};

/// Keeps a team of agents working.
#[derive(Debug, Parser)]
#[command(name = "crabtalk nexus", bin_name = "crabtalk nexus", version = crabtalk_client::VERSION)]
pub(super) struct Args {
    /// Answers as JSON.
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run it, in the foreground.
    Run {
        /// Tells line by line, also at a terminal.
        #[arg(long)]
        lines: bool,
    },
    /// Write the configuration, then the files of the team.
    Init,
    #[command(flatten)]
    Say(Command),
    /// What happened.
    Log {
        /// With this agent alone.
        agent: Option<Name>,
        /// So many entries.
        #[arg(short = 'n', long, default_value_t = 40)]
        count: usize,
    },
    /// Why something was done: the number of an entry, or an agent.
    Explain {
        /// A number of the log, or an agent's name.
        what: String,
    },
    /// Speak as ADMIN: "@AGENT [TOPIC]: text".
    Send {
        /// The message.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Tasks that are given to whoever is free.
    Task {
        #[command(subcommand)]
        what: Task,
    },
    /// Allow what an agent asks, or its compression; answer its question.
    Approve {
        /// Whose.
        agent: Name,
        /// The answer to a question.
        #[arg(conflicts_with = "always", allow_negative_numbers = true)]
        answer: Vec<String>,
        /// For good, where that is offered.
        #[arg(long)]
        always: bool,
        /// Which prompt; the oldest else.
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Refuse it.
    Deny {
        /// Whose.
        agent: Name,
        /// Why, for the agent.
        reason: Vec<String>,
        /// Which prompt; the oldest else.
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Look on at a NEXUS that runs; with an agent: look into its silence, or do not.
    Monitor {
        /// Whose.
        #[arg(requires = "on")]
        agent: Option<Name>,
        /// Whether.
        on: Option<Switch>,
    },
    /// Go to an agent.
    Attach {
        /// Which.
        agent: Name,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Task {
    /// Put one into the queue: "@AGENT [TOPIC]: text", or "@ANY ..".
    Add {
        /// The task.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// The tasks, open, assigned and done.
    List,
    /// All of one.
    Show {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
    },
    /// End one as done.
    Done {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
        /// The result.
        result: Vec<String>,
    },
    /// Give one to another agent, or to `ANY`.
    Reassign {
        /// Its number, such as `t3`.
        #[arg(value_parser = task_id)]
        task: u64,
        /// The agent, or `ANY`.
        to: Name,
    },
    /// Remove one.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}
