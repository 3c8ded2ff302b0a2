//! Events, and who runs when they come.

use super::number::at_least;
use clap::{Args, Subcommand};

/// `subscriptions`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Subscriptions {
    /// List them, with what became of their events since the daemon started.
    #[default]
    List,
    /// Run an agent when an event comes from a source.
    Add {
        /// The source; `*` and `?` stand for others, as in `build:*`.
        source: String,
        /// Only the next event.
        #[arg(long)]
        once: bool,
        /// What the agent is told before the payload.
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        prompt: String,
    },
    /// Remove one; what it started goes on.
    Rm {
        /// Its number.
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
}

/// `publish`
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Where the event comes from, one word, as in `build:failed`.
    pub(crate) source: String,
    /// What agents are told; what is piped in is appended.
    #[arg(trailing_var_arg = true)]
    pub(crate) payload: Vec<String>,
    /// Do not read standard input.
    #[arg(long)]
    pub(crate) no_stdin: bool,
}
