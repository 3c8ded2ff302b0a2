//! Runs an unchanged MCP server with standard streams as a component, with a
//! system service, a port file, and restarts.
//!
//! ```text
//! settings  config/mcpd.toml: the servers
//! life      restarts a server with growing delays
//! bridge    forwards messages between sessions and the server
//! ```
//!
//! Invariants: the processes of a server end with this one, even on `kill -9`; a server
//! is announced only while it answers; its log is bounded.

#[expect(
    deprecated,
    reason = "existing servers use what the next version of the protocol drops"
)]
mod bridge;
mod life;
mod settings;

use clap::Parser;
use crabtalk_component::{Action, Component, Home, Service, run_action};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Runs a server of the Model Context Protocol as a component.
#[derive(Debug, Parser)]
#[command(name = "crabtalk-mcpd", version, color = clap::ColorChoice::Never, arg_required_else_help = true)]
struct Cli {
    /// Name of the server in config/mcpd.toml, and of the component.
    name: String,
    #[command(subcommand)]
    action: Action,
}

struct Mcpd {
    component: Component,
}

impl Service for Mcpd {
    fn component(&self) -> &Component {
        &self.component
    }

    fn arguments(&self) -> Vec<OsString> {
        vec![self.component.name().into()]
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        let server = settings::Settings::read(&home)?.server(self.component.name())?;
        life::run(&self.component, &server, home, stop).await
    }
}

fn main() -> ExitCode {
    // This program is also its own guardian.
    if let Some(code) = crabtalk_guardian::enter() {
        return code;
    }
    let cli = Cli::parse();
    let about = format!("The MCP server {}", cli.name);
    match Component::named(&cli.name, &about) {
        Ok(component) => run_action(Mcpd { component }, cli.action),
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e}");
            ExitCode::from(2)
        }
    }
}
