//! The commands of every component.

use crate::{Home, Manager, Plan, Service, stop_signal};
use anyhow::Context;
use clap::{Args, ColorChoice, Command, FromArgMatches, Subcommand};
use std::io::Write;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

// A component with further commands flattens this into them and calls [`run_action`].
/// Runs a component in the foreground or as a service.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Action {
    /// Runs in the foreground until SIGTERM or Ctrl-C.
    Serve,
    /// Installs the service and starts it.
    Start(DryRun),
    /// Stops the service and removes it.
    Stop(DryRun),
    /// Stops the service if it runs, and starts it.
    Restart(DryRun),
    /// Shows whether the service runs, and its port.
    Status,
    /// Shows the end of the log.
    Logs {
        /// Follows the log.
        #[arg(short, long)]
        follow: bool,
        /// Number of lines.
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: u32,
    },
}

/// Whether to print the steps only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct DryRun {
    /// Prints the files and commands without writing or running them.
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs the program of a component without further commands.
pub fn run<S: Service>(service: S) -> ExitCode {
    let name = format!("crabtalk-{}", service.component().name());
    let about = service.component().description().to_owned();
    let command = Command::new("component")
        .bin_name(name)
        .version(env!("CARGO_PKG_VERSION"))
        .color(ColorChoice::Never)
        .subcommand_required(true)
        .arg_required_else_help(true);
    let command = Action::augment_subcommands(command).about(about);
    let matches = command.get_matches();
    match Action::from_arg_matches(&matches) {
        Ok(action) => run_action(service, action),
        Err(e) => e.exit(),
    }
}

/// Runs a command and prints its error.
pub fn run_action<S: Service>(service: S, action: Action) -> ExitCode {
    let done = Home::of_environment().and_then(|home| act(service, action, home));
    match done {
        Ok(code) => code,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn act<S: Service>(service: S, action: Action, home: Home) -> anyhow::Result<ExitCode> {
    let component = service.component().clone();
    let manager = Manager::of_this_system();
    match action {
        Action::Serve => {
            serve(service, home)?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Start(DryRun { dry_run }) => start(manager, &definition(&service, &home)?, dry_run),
        Action::Stop(DryRun { dry_run }) => {
            let definition = definition(&service, &home)?;
            carry_out(&manager.stop(&definition)?, dry_run)
        }
        Action::Restart(DryRun { dry_run }) => {
            let definition = definition(&service, &home)?;
            carry_out(&manager.stop(&definition)?, dry_run)?;
            start(manager, &definition, dry_run)
        }
        Action::Status => crate::service::status(manager, &component, &home),
        Action::Logs { follow, lines } => {
            crate::service::logs(&home.log(component.name()), lines, follow)
        }
    }
}

/// Defines a service that runs this program with `serve`.
fn definition(service: &impl Service, home: &Home) -> anyhow::Result<crate::Definition> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = vec![program.into_os_string()];
    command.extend(service.arguments());
    command.push("serve".into());
    crate::Definition::new(service.component().clone(), command, home.clone())
}

/// Installs and starts the service, replacing an older one, and reports its state.
fn start(
    manager: Manager,
    definition: &crate::Definition,
    dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let done = carry_out(&manager.start(definition)?, dry_run)?;
    if dry_run {
        return Ok(done);
    }
    crate::service::came_up(manager, &definition.component, &definition.home)
}

fn carry_out(plan: &Plan, dry_run: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    if dry_run {
        write!(out, "{plan}")?;
    } else {
        plan.carry_out(&mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the runtime and the log, and serves until a stop signal.
fn serve<S: Service>(service: S, home: Home) -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // Writing to a closed standard error would panic.
        .log_internal_errors(false)
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let serving = service.serve(home, stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => return served,
            asked = stop_signal() => asked?,
        }
        stop.cancel();
        serving.await
    })
}
