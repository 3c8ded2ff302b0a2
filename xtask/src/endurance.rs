//! `cargo xtask torture`, `crash`, `chaos` and `soak`: the endurance tests of the
//! binary, for longer, against a release build.

mod picture;

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kills unless told otherwise.
const KILLS: u64 = 200;

/// Minutes unless told otherwise.
const MINUTES: f64 = 10.0;

/// The same for components, of which each minute ends with a look at what is left.
const CHAOS_MINUTES: u64 = 20;

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn docs() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask lies in the workspace")?;
    Ok(root.join("docs"))
}

/// Builds the daemon as it is released, and tells where it is.
fn daemon() -> anyhow::Result<PathBuf> {
    let status = cargo()
        .args(["build", "--release", "--package", "crabtalk"])
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the daemon does not build");
    // This program lies in TARGET/debug.
    let this = std::env::current_exe()?;
    let target = this.ancestors().nth(2).context("no target folder")?;
    Ok(target.join("release/crabtalk"))
}

fn run(test: &str, variables: &[(&str, String)]) -> anyhow::Result<()> {
    let status = cargo()
        .args(["test", "--quiet", "--package", "crabtalk"])
        .args(["--test", "endurance", "--", "--nocapture", test])
        .env("CRABTALK_PROGRAM", daemon()?)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "{test} failed");
    Ok(())
}

/// Kills the daemon so many times.
pub(crate) fn torture(kills: Option<&str>, seed: Option<&str>) -> anyhow::Result<()> {
    let kills: u64 = kills.map_or(Ok(KILLS), str::parse)?;
    let seed: u64 = seed.map_or(Ok(1), str::parse)?;
    run(
        "torture",
        &[
            ("CRABTALK_TORTURE_KILLS", kills.to_string()),
            ("CRABTALK_TORTURE_SEED", seed.to_string()),
        ],
    )
}

/// Kills the daemon at every call that changes a file, or at so many of them.
pub(crate) fn crash(points: Option<&str>, seed: Option<&str>) -> anyhow::Result<()> {
    let points: u64 = points.map_or(Ok(0), str::parse)?;
    let seed: u64 = seed.map_or(Ok(1), str::parse)?;
    run(
        "crash",
        &[
            ("CRABTALK_CRASH_POINTS", points.to_string()),
            ("CRABTALK_CRASH_SEED", seed.to_string()),
        ],
    )
}

/// Lets components die, hang and be replaced for so many minutes, and writes what each
/// minute left to `target/chaos.csv`.
pub(crate) fn chaos(minutes: Option<&str>, seed: Option<&str>) -> anyhow::Result<()> {
    let minutes: u64 = minutes.map_or(Ok(CHAOS_MINUTES), str::parse)?;
    let seed: u64 = seed.map_or(Ok(1), str::parse)?;
    let csv = docs()?.with_file_name("target").join("chaos.csv");
    run(
        "chaos",
        &[
            ("CRABTALK_CHAOS_SECS", (minutes * 60).to_string()),
            ("CRABTALK_CHAOS_SEED", seed.to_string()),
            ("CRABTALK_CHAOS_CSV", csv.display().to_string()),
        ],
    )
}

/// Lets clients misbehave for so many minutes and draws what it cost.
pub(crate) fn soak(minutes: Option<&str>) -> anyhow::Result<()> {
    let minutes: f64 = minutes.map_or(Ok(MINUTES), str::parse)?;
    let csv = docs()?.join("soak.csv");
    let secs = (minutes * 60.0).round();
    let outcome = run(
        "soak",
        &[
            ("CRABTALK_SOAK_SECS", format!("{secs}")),
            ("CRABTALK_SOAK_CSV", csv.display().to_string()),
        ],
    );
    // The picture of a soak that failed is the one that is needed most.
    if outcome.is_err() && !csv.exists() {
        return outcome;
    }
    draw()?;
    outcome
}

/// Draws the samples that are there.
pub(crate) fn draw() -> anyhow::Result<()> {
    let docs = docs()?;
    let samples = std::fs::read_to_string(docs.join("soak.csv"))?;
    Ok(std::fs::write(
        docs.join("soak.svg"),
        picture::draw(&samples)?,
    )?)
}
