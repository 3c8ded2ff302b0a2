//! The one binary: `crabtalk daemon run` hosts the daemon, `__guardian`
//! watches over a tool's processes, everything else is the client.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A guardian starts for every command, so nothing comes before it.
    if let Some(code) = crabtalk_guardian::enter() {
        return code;
    }
    crabtalk_cli::main(std::env::args_os(), run_daemon)
}

fn run_daemon(options: crabtalk_cli::DaemonOptions) -> anyhow::Result<()> {
    crabtalk_daemon::run(crabtalk_daemon::Options {
        home: options.home,
        log_to_stderr: !options.detached,
    })
}
