//! Arguments of `conversations`, `export` and `top`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) command: Option<Shelf>,
    /// Number of conversations, newest first; 0 lists all.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: u32,
}

// `--agent`, `--as` and `--project` select the conversation, else the folder does.
#[derive(Debug, Subcommand)]
pub(crate) enum Shelf {
    /// Set the title of the conversation.
    Title {
        /// The title; '' removes it.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        title: Vec<String>,
    },
    /// Set the working folder of the conversation.
    Folder {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Search messages and titles of all conversations.
    Search {
        /// Words that must all occur.
        #[arg(required = true, num_args = 1.., value_name = "WORD")]
        words: Vec<String>,
        /// Maximum number of hits.
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
    },
    /// Move the conversation, its archives and tool output to the trash.
    Rm,
    /// List the conversations in the trash.
    Trash,
    /// Restore a conversation from the trash [default: the last one].
    Restore {
        /// FILE of the conversation in `conversations trash`.
        #[arg(long, value_name = "NAME")]
        file: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Write to this file, which must not exist [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Seconds between updates.
    #[arg(short = 'd', long, default_value_t = 1, value_name = "SECS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) delay: u64,
    /// Stop after this number of updates.
    #[arg(short = 'n', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}
