//! What models there are and what they cost.

use super::Named;
use super::number::between;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `models`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Models {
    /// List them.
    #[default]
    List,
    /// Make one the active one, for agents that name none.
    Use {
        /// Its name (see `models`).
        name: String,
    },
    /// Ask one for a word, to see whether it answers.
    Test {
        /// Its name; default: the active one.
        name: Option<String>,
    },
}

/// `providers`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Providers {
    /// List them.
    #[default]
    List,
    /// Show one's table, secrets masked.
    Show(Named),
    /// Add one, or replace it; its table comes from a file or standard input.
    Set {
        /// Its name.
        name: String,
        /// The table: kind, api_key, models and so on, as TOML, JSON or YAML.
        /// `-` is standard input. A masked secret stays as it is.
        #[arg(long, value_name = "FILE", default_value = "-")]
        file: PathBuf,
    },
    /// Remove one.
    Rm(Named),
    /// Switch one on.
    Enable(Named),
    /// Switch one off, and keep it.
    Disable(Named),
}

/// `stats`
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// What was spent, row by row, instead of the figures.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// Days that count, today included.
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = between::<u32>(1, 400))]
    pub(crate) days: u32,
}

/// What spending is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Days.
    Day,
    /// Agents.
    Agent,
    /// Models.
    Model,
    /// Conversations.
    Conversation,
    /// The last runs of these days.
    Run,
}

impl By {
    /// As the protocol has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Conversation => "conversation",
            Self::Run => "run",
        }
    }
}
