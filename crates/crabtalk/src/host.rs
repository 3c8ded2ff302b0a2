//! Hosts the daemon, and watches over a tool's processes.

use std::process::ExitCode;

/// The process's role if a person did not start it: a guardian. One
/// starts for every command of an agent, so nothing comes before it.
pub(crate) fn enter() -> Option<ExitCode> {
    crabtalk_guardian::enter()
}

/// Runs the daemon until it is told to end.
fn run_daemon(options: crabtalk_cli::DaemonOptions) -> anyhow::Result<()> {
    crabtalk_daemon::run(crabtalk_daemon::Options {
        home: options.home,
        log_to_stderr: !options.detached,
    })
}

/// The operations of the program on a home, beside running its daemon.
pub(crate) const HOST: crabtalk_cli::Host = crabtalk_cli::Host {
    run_daemon,
    backup: crabtalk_daemon::backup,
    restore: crabtalk_daemon::restore,
};
