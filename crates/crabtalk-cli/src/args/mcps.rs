//! Servers of the Model Context Protocol.

use super::Named;
use clap::Subcommand;
use std::path::PathBuf;

/// `mcps`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Mcps {
    /// List servers and components, and how they fare.
    #[default]
    List,
    /// Add a server, or replace it: a program behind `--`, or an address.
    Add {
        /// Its name; tools are called NAME__TOOL.
        name: String,
        /// The address of one that is reached over HTTP.
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// A header of every request, as NAME=VALUE; `${VARIABLE}` stands for one
        /// of the daemon's environment.
        #[arg(long, value_name = "NAME=VALUE", requires = "url")]
        header: Vec<String>,
        /// A variable of the program, as NAME=VALUE.
        #[arg(long, value_name = "NAME=VALUE", requires = "command")]
        env: Vec<String>,
        /// Let tools that say they only read be called without asking.
        #[arg(long)]
        trust_annotations: bool,
        /// The program and its arguments.
        #[arg(last = true, value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// Remove a server of the configuration.
    Rm(Named),
    /// Connect to a server and say what comes of it.
    Test(Named),
    /// Log in to a server at an address, with a browser.
    Login {
        /// Its name.
        name: String,
        /// Do not open a browser; say the address alone.
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login to a server.
    Logout(Named),
    /// Switch a server of the configuration on.
    Enable(Named),
    /// Switch one off, and keep it.
    Disable(Named),
    /// Take over servers that other programs have in their configuration.
    Import {
        /// A JSON file with `mcpServers`; without one the usual places are looked
        /// at. Nothing is taken that was not agreed to.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Take what is found without asking.
        #[arg(long)]
        yes: bool,
    },
}
