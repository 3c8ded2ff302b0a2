//! Arguments of `archives`, `search`, `memory`, `skills` and `trust`.

use super::{Named, Page};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Archives {
    /// Show the summary and messages of an archive.
    Show {
        /// Number of the archive (see `archives`).
        #[arg(value_name = "N")]
        index: u32,
        #[command(flatten)]
        page: Page,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to search for.
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// Maximum number of hits.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) limit: u32,
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Memory {
    /// List the entries visible to the sender.
    #[default]
    List,
    /// Show an entry.
    Show {
        /// Name of the entry.
        #[arg(required = true, num_args = 1.., value_name = "NAME")]
        name: Vec<String>,
    },
    /// Search entries like an agent's recall.
    Recall(Search),
    /// Add an entry, or replace your own.
    Add {
        /// Name of the entry; quote spaces.
        name: String,
        /// Content; standard input is appended.
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
        /// One line that helps to find the entry.
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
        /// Share with other senders; owners only.
        #[arg(long, conflicts_with = "private")]
        shared: bool,
        /// Stop sharing.
        #[arg(long)]
        private: bool,
        /// Do not read standard input.
        #[arg(long)]
        no_stdin: bool,
    },
    /// Delete an entry.
    Rm {
        /// Name of the entry.
        #[arg(required = true, num_args = 1.., value_name = "NAME")]
        name: Vec<String>,
    },
    /// Copy the Markdown notes below a folder into memory.
    Import {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Skills {
    /// List skills.
    #[default]
    List,
    /// Show a skill.
    Show(Named),
    /// Enable a skill.
    Enable(Named),
    /// Disable a skill and keep it.
    Disable(Named),
    /// Check the skills in or below a folder.
    Check {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Copy the skills in or below a folder to config/skills.
    Import {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Replace existing skills.
        #[arg(long)]
        replace: bool,
    },
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Trust {
    /// List trusted folders and skills.
    #[default]
    List,
    /// Trust a folder's instructions, or the current version of a skill.
    Add {
        /// The folder; that of a skill contains SKILL.md.
        path: PathBuf,
    },
    /// Stop trusting a folder or skill.
    Rm {
        /// The folder.
        path: PathBuf,
    },
}
