//! Arguments of `config`, `init`, `completions` and `man`.

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the effective configuration; secrets are masked.
    Get {
        /// Key, such as `limits.queued_runs`.
        key: Option<String>,
    },
    /// Set a value; comments in the file stay.
    Set {
        /// Key, such as `limits.queued_runs`.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        key: String,
        /// TOML value, or plain text.
        value: String,
    },
    /// Remove a value, which restores its default.
    Unset {
        /// Key, such as `limits.queued_runs`.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        key: String,
    },
    /// Edit the file; only a valid file is saved.
    Edit {
        /// Replace it with this file; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the path of the file.
    Path,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "`--model NAME` sets the default model.")]
pub(crate) struct Init {
    /// Name of the provider, detected or new.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Kind: openai, anthropic, google, bedrock, azure, ollama, offline.
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Address of its API [default: by kind].
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Variable with the key, in the daemon's environment.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    pub(crate) key_env: Option<String>,
    /// File with the key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Add or replace a provider even if one is configured.
    #[arg(long)]
    pub(crate) force: bool,
    /// Use the first detected provider without asking.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Do not send a test request.
    #[arg(long)]
    pub(crate) no_test: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Name of the shell.
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write one page per command to this folder [default: print the main page].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
