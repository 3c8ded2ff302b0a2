//! What agents are and may do.

use super::Named;
use super::number::at_least;
use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

/// `agents`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Agents {
    /// List them.
    #[default]
    List,
    /// Show one, with what it may do in effect.
    Show {
        /// Its name; default: the default agent.
        name: Option<String>,
    },
    /// Create one from the text of its file; without one, in the editor.
    New {
        /// Its name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The text: frontmatter and prompt. `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Change one, in the editor or by the text of its file.
    Edit {
        /// Its name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The text: frontmatter and prompt. `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove one; its conversations stay.
    Rm(Named),
}

/// `approvals`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Approvals {
    /// List them, of everybody unless --agent or --as narrow it.
    #[default]
    List,
    /// Take one back.
    Rm {
        /// Which one (see `approvals`).
        #[arg(value_name = "N")]
        #[arg(value_parser = at_least::<u32>(1))]
        index: u32,
    },
}
