//! `cargo xtask attack`: tries every known way out of the sandbox, runs
//! generated commands in it beside canaries, and repeats the tests of the rules
//! that decide without it.

use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::process::Command;

const DEFAULT_MINUTES: f64 = 10.0;

/// Attacks the sandbox for some minutes; the same seed generates the same
/// commands. As root the suite runs as an ordinary user, and only so.
pub(crate) fn run(minutes: Option<&str>, seed: Option<&str>) -> anyhow::Result<()> {
    let minutes: f64 = minutes.map_or(Ok(DEFAULT_MINUTES), str::parse)?;
    let mut variables = vec![("CRABTALK_ATTACK_SECS", format!("{:.0}", minutes * 60.0))];
    if let Some(seed) = seed {
        let seed: u64 = seed.parse().context("a seed is a number")?;
        variables.push(("CRABTALK_ATTACK_SEED", seed.to_string()));
    }
    let mut sandbox = vec![
        "-p",
        "crabtalk-tools",
        "--test",
        "sandbox",
        "--",
        "--nocapture",
    ];
    if rustix::process::geteuid().is_root() {
        sandbox.push("ordinary");
    }
    test(&sandbox, &variables).context("a command got out of the sandbox; the seed is above")?;
    test(&["-p", "crabtalk-gate"], &[]).context("the gate allows a command that it must not")?;
    let nexus = [
        "-p",
        "crabtalk-nexus",
        "--lib",
        "--",
        "rules",
        "prompt",
        "control",
    ];
    test(&nexus, &[]).context("NEXUS answers a question that it must not")
}

fn test(arguments: &[&str], variables: &[(&str, String)]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet"])
        .args(arguments.iter().map(OsStr::new))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .status()
        .context("cannot run cargo")?;
    ensure!(
        status.success(),
        "`cargo test {}` failed",
        arguments.join(" ")
    );
    Ok(())
}
