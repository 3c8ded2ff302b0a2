//! Conversations as wholes, and what goes on in all of them.

use super::number::{at_least, between};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `conversations`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) command: Option<Shelf>,
    /// How many of the latest; 0 for all.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    #[arg(value_parser = at_least::<u32>(0))]
    pub(crate) limit: u32,
}

/// What can be done to conversations. Which one is meant `--agent`, `--as` and
/// `--project` say, else the folder.
#[derive(Debug, Subcommand)]
pub(crate) enum Shelf {
    /// Give it a title.
    Title {
        /// The title; '' takes it away.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        title: Vec<String>,
    },
    /// Say where it works when a message names no folder.
    Folder {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Look for words in all that was said, and in titles.
    Search {
        /// All of these words have to be there.
        #[arg(required = true, num_args = 1.., value_name = "WORD")]
        words: Vec<String>,
        /// Messages at most.
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        #[arg(value_parser = between::<u32>(1, 500))]
        limit: u32,
    },
    /// Move it to the trash, with its archives and what its tools kept.
    Rm,
    /// List what is in the trash.
    Trash,
    /// Take it back from the trash, the last removed first.
    Restore {
        /// Which one, by its FILE in `conversations trash`.
        #[arg(long, value_name = "NAME")]
        file: Option<String>,
    },
}

/// How a conversation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For people.
    Markdown,
    /// One object: whose it is, and all messages as in `history --json`.
    Json,
}

/// `export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// As what; default: Markdown, with --json JSON.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ExportFormat>,
    /// To this file, which must not exist; default: to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `top`
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Seconds from one look to the next.
    #[arg(short = 'd', long, default_value_t = 1, value_name = "SECS")]
    #[arg(value_parser = between::<u64>(1, 3600))]
    pub(crate) delay: u64,
    /// End after so many looks.
    #[arg(short = 'n', long, value_name = "N")]
    #[arg(value_parser = at_least::<u64>(1))]
    pub(crate) count: Option<u64>,
}
