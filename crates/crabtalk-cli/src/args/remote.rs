//! Arguments of `tokens`, `remote` and `audit`.

use super::Named;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Tokens {
    /// List tokens and the addresses of the daemon.
    #[default]
    List,
    /// Create a token and print it once.
    Add {
        /// Name of the token, and its default sender.
        name: String,
        /// talk: use agents; operate: also manage runs; admin: also change the
        /// configuration.
        #[arg(long, default_value = "talk", value_name = "ROLE")]
        #[arg(value_parser = ["talk", "operate", "admin"])]
        role: String,
        /// Patterns of allowed agents [default: all].
        #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
        agents: Vec<String>,
        /// Patterns of allowed senders [default: its name; operate and admin: all
        /// but owners].
        #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
        senders: Vec<String>,
        /// Folders on the daemon's machine in which its runs may work [default: none].
        #[arg(long, value_name = "DIR", value_delimiter = ',')]
        folders: Vec<String>,
        /// Expiry: a date or an RFC 3339 time.
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
    /// Remove a token and close its connections.
    Rm(Named),
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Remote {
    /// List remote daemons.
    #[default]
    List,
    /// Add a remote daemon and pin its certificate. The token is read from the
    /// terminal or standard input.
    Add {
        /// Name for `--connect NAME`.
        name: String,
        /// Address: tcp://HOST:PORT.
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// Fingerprint of its certificate, from `crabtalk tokens` on that machine
        /// [default: ask].
        #[arg(long, value_name = "SHA256:..")]
        fingerprint: Option<String>,
        /// File with the token.
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
    },
    /// Remove a remote daemon; its token stays valid.
    Rm(Named),
}

/// Default number of audit entries.
pub(crate) const LATEST_ENTRIES: u32 = 50;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the latest entries.
    List {
        /// Number of entries.
        #[arg(short = 'n', long, default_value_t = LATEST_ENTRIES, value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Verify the chain of hashes and report the first bad entry.
    Verify,
    /// Start a new chain after a bad entry; entries are kept.
    NewChain,
}
