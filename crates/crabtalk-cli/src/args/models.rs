//! Arguments of `models`, `providers` and `stats`.

use super::Named;
use crate::completions::{Names, names};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Models {
    /// List models.
    #[default]
    List,
    /// Set the default model.
    Use {
        /// Name of the model (see `models`).
        #[arg(add = names(Names::Models))]
        name: String,
    },
    /// Send a short request to a model.
    Test {
        /// Name of the model [default: the default model].
        #[arg(add = names(Names::Models))]
        name: Option<String>,
    },
}

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Providers {
    /// List providers.
    #[default]
    List,
    /// Show the settings of a provider, with masked secrets.
    Show(Named),
    /// Add or replace a provider.
    Set {
        /// Name of the provider.
        name: String,
        /// File with kind, api_key, models and so on as TOML or JSON; `-` is standard
        /// input. Masked secrets stay unchanged.
        #[arg(long, value_name = "FILE", default_value = "-")]
        file: PathBuf,
    },
    /// Remove a provider.
    Rm(Named),
    /// Enable a provider.
    Enable(Named),
    /// Disable a provider and keep its settings.
    Disable(Named),
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Show spending in groups.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// Number of days, including today.
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=400))]
    pub(crate) days: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// By day.
    Day,
    /// By agent.
    Agent,
    /// By model.
    Model,
    /// By conversation.
    Conversation,
    /// The most recent runs.
    Run,
}

impl By {
    /// The name on the wire.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
