//! The configuration file, and what shells need to know of the command line.

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
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
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        key: String,
        /// What, as TOML has it; what is none is taken for a text.
        value: String,
    },
    /// Remove one value, so that its default holds.
    Unset {
        /// Where, with dots.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
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

/// `init`; the model is the `--model` of every command.
#[derive(Debug, clap::Args)]
#[command(after_help = "`--model NAME` is the model that agents use which name none.")]
pub(crate) struct Init {
    /// The provider's name; one that was found, or a new one.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Its kind: openai, anthropic, google, bedrock, azure, ollama, offline.
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Where it listens, if not where its kind does.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The variable of the daemon's environment that holds the key.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    pub(crate) key_env: Option<String>,
    /// The file that holds the key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Add a provider, or replace one, where one is configured already.
    #[arg(long)]
    pub(crate) force: bool,
    /// Take what was found first, and ask nothing.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Do not try it with a request.
    #[arg(long)]
    pub(crate) no_test: bool,
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
