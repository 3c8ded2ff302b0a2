//! `cargo xtask crash`, `chaos` and `soak`: the endurance tests of the binary, for
//! longer, against a release build unless `CRABTALK_PROGRAM` names another.

use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

const DEFAULT_SOAK_MINUTES: f64 = 10.0;

/// Longer than a soak, since each minute ends with a check of what is left.
const DEFAULT_CHAOS_MINUTES: f64 = 20.0;

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The target folder: this program is in `TARGET/debug`.
fn target() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let target = this.ancestors().nth(2).context("no target folder")?;
    Ok(target.to_owned())
}

/// The tests run this program, if it is set.
const PROGRAM: &str = "CRABTALK_PROGRAM";

/// The program under test: a release build, unless the environment names one.
fn program() -> anyhow::Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    let built = cargo()
        .args(["build", "--release", "--package", "crabtalk"])
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the daemon does not build");
    Ok(target()?.join("release/crabtalk"))
}

/// Runs one test.
fn run(test: &str, variables: &[(&str, String)]) -> anyhow::Result<()> {
    let status = cargo()
        .args(["test", "--quiet", "--package", "crabtalk"])
        .args(["--test", "endurance", "--", "--nocapture", test])
        .env(PROGRAM, program()?)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "{test} failed");
    Ok(())
}

fn seconds(minutes: Option<&str>, default: f64) -> anyhow::Result<String> {
    let minutes: f64 = minutes.map_or(Ok(default), str::parse)?;
    Ok(format!("{:.0}", minutes * 60.0))
}

fn seed(seed: Option<&str>) -> anyhow::Result<String> {
    let seed: u64 = seed.map_or(Ok(1), str::parse)?;
    Ok(seed.to_string())
}

/// Kills the daemon at every call that changes a file, or at some of them.
pub(crate) fn crash(points: Option<&str>, number: Option<&str>) -> anyhow::Result<()> {
    let points: u64 = points.map_or(Ok(0), str::parse)?;
    let variables = [
        ("CRABTALK_CRASH_POINTS", points.to_string()),
        ("CRABTALK_CRASH_SEED", seed(number)?),
    ];
    run("crash", &variables)
}

/// Kills, stops and replaces components; samples go to `target/chaos.csv`.
pub(crate) fn chaos(minutes: Option<&str>, number: Option<&str>) -> anyhow::Result<()> {
    let csv = target()?.join("chaos.csv");
    let variables = [
        (
            "CRABTALK_CHAOS_SECS",
            seconds(minutes, DEFAULT_CHAOS_MINUTES)?,
        ),
        ("CRABTALK_CHAOS_SEED", seed(number)?),
        ("CRABTALK_CHAOS_CSV", csv.display().to_string()),
    ];
    run("chaos", &variables)
}

/// Lets clients misbehave; samples go to `target/soak.csv`.
pub(crate) fn soak(minutes: Option<&str>) -> anyhow::Result<()> {
    let csv = target()?.join("soak.csv");
    let variables = [
        (
            "CRABTALK_SOAK_SECS",
            seconds(minutes, DEFAULT_SOAK_MINUTES)?,
        ),
        ("CRABTALK_SOAK_CSV", csv.display().to_string()),
    ];
    run("soak", &variables)
}
