//! `crabtalk-fetch URL`, and the component.

use clap::Parser;
use crabtalk_component::{Action, Component, Home, Mcp, run_action};
use crabtalk_fetch::{Fetcher, Server, Settings};
use std::io::Write;
use std::process::ExitCode;

/// Fetches pages as readable text.
#[derive(Debug, Parser)]
#[command(
    name = "crabtalk-fetch",
    version,
    color = clap::ColorChoice::Never,
    args_conflicts_with_subcommands = true
)]
#[command(arg_required_else_help = true)]
struct Cli {
    /// Address of the page to print.
    url: Option<String>,
    /// Prints HTML unconverted.
    #[arg(long)]
    raw: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "crabtalk-fetch: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let home = Home::of_environment()?;
    let settings = Settings::read(&home.path().join("config/fetch.toml"))?;
    let fetcher = Fetcher::new(settings);
    match (cli.action, cli.url) {
        (Some(action), _) => {
            let component = Component::new("fetch", "Fetches pages of the web as text");
            let server = Server::new(fetcher);
            let service = Mcp::new(component, move || server.clone());
            Ok(run_action(service, action))
        }
        (None, Some(url)) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let page = runtime.block_on(fetcher.fetch(&url, cli.raw))?;
            let mut out = std::io::stdout().lock();
            if let Some(title) = &page.title {
                writeln!(out, "{title}\n")?;
            }
            writeln!(out, "{}", page.text)?;
            if page.cut {
                writeln!(
                    std::io::stderr(),
                    "crabtalk-fetch: the page is longer than the limit and was cut"
                )?;
            }
            Ok(ExitCode::SUCCESS)
        }
        (None, None) => Ok(ExitCode::from(2)),
    }
}
