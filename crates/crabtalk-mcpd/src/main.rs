//! Gives a server of the Model Context Protocol that speaks over standard streams the
//! life of a component: a service of the system, a port file, another start when it
//! ends. The server need not be changed.
//!
//! ```text
//! settings  config/mcpd.toml: which servers there are
//! life      one start of a server after another, with pauses that grow
//! bridge    requests from sessions to the server, and what it says to them
//! ```
//!
//! Invariants: no process of a server outlives this one, `kill -9` included; a server
//! is announced only while it answers; what it writes is bounded.

#[expect(
    deprecated,
    reason = "servers that people have use what the next version of the protocol drops"
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
    /// The server's name in config/mcpd.toml, which is the component's.
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
    // A guardian is this program, too.
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
