//! Arguments of `mcps`.

use super::Named;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Mcps {
    /// List servers and components with their state.
    #[default]
    List,
    /// Add or replace a server: `-- PROGRAM ARGS` or `--url`.
    Add {
        /// Name of the server; its tools are named NAME__TOOL.
        name: String,
        /// Address of an HTTP server.
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// Header of every request; `${VARIABLE}` reads the daemon's environment.
        #[arg(long, value_name = "NAME=VALUE", requires = "url")]
        header: Vec<String>,
        /// Environment variable of the program.
        #[arg(long, value_name = "NAME=VALUE", requires = "command")]
        env: Vec<String>,
        /// Allow tools marked as read-only without approval.
        #[arg(long)]
        trust_annotations: bool,
        /// Program and arguments.
        #[arg(last = true, value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// Remove a server.
    Rm(Named),
    /// Connect to a server and report the result.
    Test(Named),
    /// Log in to an HTTP server with the browser.
    Login {
        /// Name of the server.
        name: String,
        /// Print the address instead of opening a browser.
        #[arg(long)]
        no_browser: bool,
    },
    /// Delete the login of a server.
    Logout(Named),
    /// Enable a server.
    Enable(Named),
    /// Disable a server and keep its settings.
    Disable(Named),
    /// Import servers from the configuration of other programs.
    Import {
        /// JSON file with `mcpServers` [default: search the usual places].
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Import all servers without asking.
        #[arg(long)]
        yes: bool,
    },
}
