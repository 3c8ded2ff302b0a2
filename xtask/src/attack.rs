//! `cargo xtask attack`: every known way out of the sandbox, then generated
//! commands in it beside canaries, for longer than a test should take.

use anyhow::{Context, ensure};
use std::process::Command;

/// Minutes unless told otherwise.
const MINUTES: f64 = 10.0;

/// Attacks the sandbox for so many minutes; the same seed tries the same
/// commands. As root the suite runs once more as a user without rights.
pub(crate) fn run(minutes: Option<&str>, seed: Option<&str>) -> anyhow::Result<()> {
    let minutes: f64 = minutes.map_or(Ok(MINUTES), str::parse)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tests = Command::new(cargo);
    tests
        .args(["test", "--quiet", "--package", "crabtalk-tools"])
        .args(["--test", "sandbox", "--", "--nocapture"])
        .env("CRABTALK_ATTACK_SECS", format!("{:.0}", minutes * 60.0));
    if let Some(seed) = seed {
        let seed: u64 = seed.parse().context("a seed is a number")?;
        tests.env("CRABTALK_ATTACK_SEED", seed.to_string());
    }
    let status = tests.status().context("cannot run cargo")?;
    ensure!(
        status.success(),
        "a command got out of the sandbox; the seed is above"
    );
    Ok(())
}
