//! What may stand on the command line.

use crate::name::Name;
use crate::world::Command;
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}
