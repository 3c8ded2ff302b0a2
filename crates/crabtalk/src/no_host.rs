//! Where no daemon runs: the program is a client alone.

use std::process::ExitCode;

pub(crate) fn enter() -> Option<ExitCode> {
    None
}

fn run_daemon(_: crabtalk_cli::DaemonOptions) -> anyhow::Result<()> {
    anyhow::bail!(
        "a daemon runs on Unix systems; from here one is reached over TCP, with a token: \
         `crabtalk remote add NAME tcp://HOST:PORT`, then `crabtalk --connect NAME`"
    )
}

pub(crate) const HOST: crabtalk_cli::Host = crabtalk_cli::Host {
    run_daemon,
    backup: |_, _| anyhow::bail!("a home is where its daemon runs"),
    restore: |_, _| anyhow::bail!("a home is where its daemon runs"),
};
