//! Who may come in from elsewhere, daemons elsewhere, and the record.

use super::Named;
use super::number::at_least;
use clap::Subcommand;
use std::path::PathBuf;

/// `tokens`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Tokens {
    /// List them, and where the daemon listens.
    #[default]
    List,
    /// Make one, and print it this once.
    Add {
        /// Its name, and its sender where it names none.
        name: String,
        /// What it may: talk with agents, look after the daemon (operate), or
        /// change what is configured (admin).
        #[arg(long, default_value = "talk", value_name = "ROLE")]
        #[arg(value_parser = ["talk", "operate", "admin"])]
        role: String,
        /// Patterns of agents that it reaches; default: all.
        #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
        agents: Vec<String>,
        /// Patterns of senders that it reaches and may speak as; default: its own
        /// name, or with the other roles all but owners.
        #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
        senders: Vec<String>,
        /// Folders of the daemon's machine below which it may let runs work;
        /// default: none.
        #[arg(long, value_name = "DIR", value_delimiter = ',')]
        folders: Vec<String>,
        /// Until when it counts: a date, or an instant of RFC 3339.
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
    /// Remove one, and cut off whoever uses it.
    Rm(Named),
}

/// `remote`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Remote {
    /// List them.
    #[default]
    List,
    /// Add one, and pin its certificate. The token is read from the terminal, or
    /// from standard input.
    Add {
        /// What it is to be called here: `--connect NAME`.
        name: String,
        /// Where it is: tcp://HOST:PORT.
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// The fingerprint of its certificate, as `crabtalk tokens` says it there;
        /// without it you are asked to compare.
        #[arg(long, value_name = "SHA256:..")]
        fingerprint: Option<String>,
        /// A file with the token.
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
    },
    /// Remove one; its token stays valid there.
    Rm(Named),
}

/// Entries of the record that are shown when nobody says how many.
pub(crate) const LATEST_ENTRIES: u32 = 50;

/// `audit`
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the latest entries.
    List {
        /// How many.
        #[arg(short = 'n', long, default_value_t = LATEST_ENTRIES, value_name = "N")]
        #[arg(value_parser = at_least::<u32>(1))]
        limit: u32,
    },
    /// Check all of it, and name the first entry that does not fit.
    Verify,
    /// Begin a new chain where the record was changed or cut; its entries are kept.
    NewChain,
}
