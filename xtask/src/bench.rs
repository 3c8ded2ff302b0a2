//! `cargo xtask bench`: one table of what the daemon costs, beside what it may.
//!
//! Invariants: the model server is a process of its own; what is compared to
//! reading that server directly is measured in pairs, one after the other in
//! one run; the daemon is built as it is handed out.

mod cases;
mod client;
mod daemon;
mod direct;
pub(crate) mod floor;
pub(crate) mod server;
mod stats;

use anyhow::{Context, bail, ensure};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Builds what is measured and what measures, and measures.
pub(crate) fn build_and_run(names: &[String]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |arguments: &[&str], names: &[String]| {
        let status = Command::new(&cargo).args(arguments).args(names).status();
        let status = status.context("cannot run cargo")?;
        ensure!(status.success(), "cargo {} failed", arguments.join(" "));
        Ok(())
    };
    run(
        &["build", "--profile", "dist", "--package", "crabtalk"],
        &[],
    )?;
    let this = ["run", "--quiet", "--profile", "dist", "--package", "xtask"];
    run(&[&this[..], &["--", "bench-here"]].concat(), names)
}

/// Runs the cases of these names, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let known = |name: &String| cases::CASES.iter().any(|(known, _)| known == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = cases::CASES.iter().map(|(name, _)| *name).collect();
        bail!("there is no bench {unknown}; there are: {}", all.join(", "));
    }
    let room = room()?;
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    writeln!(out, "{}\n\n{}", machine(), stats::HEADING)?;
    for (name, case) in cases::CASES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            writeln!(err, "{name} ...")?;
            // A server of its own, so that no case inherits another's threads.
            let server = server::ModelServer::start(room.path())?;
            let rows = case(&server).with_context(|| format!("the bench {name} failed"))?;
            for row in rows {
                writeln!(out, "{}", row.render())?;
            }
        }
    }
    Ok(())
}

/// A folder for homes.
fn room() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("ctb").tempdir()
}

/// What it ran on.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let count = cpus.lines().filter(|l| l.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{count} × {model}, Linux {}, load at the start {}",
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    )
}
