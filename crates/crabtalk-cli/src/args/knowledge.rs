//! What an agent knows: archives, memory, skills, trust.

use super::Named;
use super::number::{at_least, between};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `archives`
#[derive(Debug, Subcommand)]
pub(crate) enum Archives {
    /// Show an archive's summary and messages.
    Show {
        /// Which one (see `archives`).
        #[arg(value_name = "N")]
        #[arg(value_parser = at_least::<u32>(0))]
        index: u32,
        /// Messages from the end.
        #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
        #[arg(value_parser = at_least::<u32>(1))]
        limit: u32,
        /// Only those before this index (the `index` of --json).
        #[arg(long, value_name = "INDEX")]
        #[arg(value_parser = at_least::<u64>(0))]
        before: Option<u64>,
    },
}

/// `search` and `memory recall`
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to look for.
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// Hits at most.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    #[arg(value_parser = between::<u32>(1, 50))]
    pub(crate) limit: u32,
}

/// `memory`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Memory {
    /// List the entries that the sender sees.
    #[default]
    List,
    /// Show an entry.
    Show {
        /// Its name.
        #[arg(required = true, num_args = 1.., value_name = "NAME")]
        name: Vec<String>,
    },
    /// Find what is remembered, as an agent's recall does.
    Recall(Search),
    /// Write an entry, or over one's own of that name.
    Add {
        /// Its name; in quotes when it has spaces.
        name: String,
        /// What it says; what is piped in is appended.
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
        /// One line that helps to find it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
        /// Let other senders see it; owners only.
        #[arg(long, conflicts_with = "private")]
        shared: bool,
        /// Let other senders not see it any more.
        #[arg(long)]
        private: bool,
        /// Do not read standard input, even if it is a pipe.
        #[arg(long)]
        no_stdin: bool,
    },
    /// Delete an entry.
    Rm {
        /// Its name.
        #[arg(required = true, num_args = 1.., value_name = "NAME")]
        name: Vec<String>,
    },
    /// Take the Markdown notes below a folder over, as copies.
    Import {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// `skills`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Skills {
    /// List the skills of the daemon.
    #[default]
    List,
    /// Show a skill.
    Show(Named),
    /// Switch a skill on.
    Enable(Named),
    /// Switch one off, and keep it.
    Disable(Named),
    /// Judge the skill in a folder, or all skills below it, by the format.
    Check {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Copy the skill in a folder, or all skills below it, into config/skills.
    Import {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Put them in the place of those that are there.
        #[arg(long)]
        replace: bool,
    },
}

/// `trust`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Trust {
    /// List what is trusted.
    #[default]
    List,
    /// Trust a folder's instructions, or a skill as it is now.
    Add {
        /// The folder; a skill's has a SKILL.md in it.
        path: PathBuf,
    },
    /// Trust a folder or a skill no longer.
    Rm {
        /// The folder.
        path: PathBuf,
    },
}
