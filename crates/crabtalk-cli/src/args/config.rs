//! The configuration file, and what shells need to know of the command line.

use clap::Subcommand;
use clap_complete::Shell;
use std::path::PathBuf;

/// `config`
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Say what is in force; secrets are masked.
    Get {
        /// One place, with dots, such as `limits.queued_runs`.
        key: Option<String>,
    },
    /// Set one value; comments of the file stay.
    Set {
        /// Where, with dots, such as `limits.queued_runs`.
        key: String,
        /// What, as TOML has it; what is none is taken for a text.
        value: String,
    },
    /// Remove one value, so that its default holds.
    Unset {
        /// Where, with dots.
        key: String,
    },
    /// Change the file in the editor; it counts if it works.
    Edit {
        /// The text instead, of a file. `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Say where the file is.
    Path,
}

/// `completions`
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// For which shell.
    pub(crate) shell: Shell,
}

/// `man`
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write a page of each command there; else the first page is printed.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
