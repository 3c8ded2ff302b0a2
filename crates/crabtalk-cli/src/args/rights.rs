//! Arguments of `agents` and `approvals`.

use crate::completions::{Names, names};
use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Agents {
    /// List agents.
    #[default]
    List,
    /// Show an agent and its effective permissions.
    Show {
        /// Name of the agent [default: the default agent].
        #[arg(add = names(Names::Agents))]
        name: Option<String>,
    },
    /// Create an agent from a file, or in the editor.
    New {
        /// Name of the agent.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// File with frontmatter and prompt; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Edit an agent in the editor, or replace its file.
    Edit {
        /// Name of the agent.
        #[arg(value_parser = NonEmptyStringValueParser::new(), add = names(Names::Agents))]
        name: String,
        /// File with frontmatter and prompt; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove an agent; its conversations stay.
    Rm {
        /// Name of the agent.
        #[arg(add = names(Names::Agents))]
        name: String,
    },
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Approvals {
    /// List permanent approvals; filter with --agent and --as.
    #[default]
    List,
    /// Revoke an approval.
    Rm {
        /// Number of the approval (see `approvals`).
        #[arg(value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        index: u32,
    },
}
