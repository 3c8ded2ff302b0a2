//! `cargo xtask bench`: one table of the daemon's costs and their bounds, beside
//! those of an earlier build if one is named.
//!
//! Invariants: the model server is a separate process; comparisons with direct
//! reads of that server are measured in pairs in one run; so are two builds,
//! case by case; the daemon is built with the profile of packages.

mod cases;
mod client;
mod daemon;
mod direct;
pub(crate) mod floor;
pub(crate) mod server;
mod stats;

use anyhow::{Context, bail, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the program of an earlier build.
const BEFORE: &str = "--before";

/// Builds what is measured and what measures, and measures.
pub(crate) fn build_and_run(arguments: &[String]) -> anyhow::Result<()> {
    let (before, names) = split(arguments)?;
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
    let before = before.iter().flat_map(|program| [BEFORE, program.as_str()]);
    let all: Vec<&str> = (this.into_iter().chain(["--", "bench-here"]))
        .chain(before)
        .collect();
    run(&all, names)
}

/// An earlier build, if one is named, and names of cases.
fn split(arguments: &[String]) -> anyhow::Result<(Option<&String>, &[String])> {
    match arguments {
        [flag, before, names @ ..] if flag == BEFORE => Ok((Some(before), names)),
        [flag] if flag == BEFORE => bail!("{BEFORE} needs a program"),
        names => Ok((None, names)),
    }
}

/// Runs the cases of these names, or all, with a build of before and this one in
/// turn.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (before, names) = split(arguments)?;
    let known = |name: &String| cases::CASES.iter().any(|(known, _)| known == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = cases::CASES.iter().map(|(name, _)| *name).collect();
        bail!("unknown bench {unknown}; there are: {}", all.join(", "));
    }
    let room = room()?;
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let heading = stats::heading(before.is_some());
    writeln!(out, "{}\n\n{heading}", machine())?;
    for (name, case) in cases::CASES {
        if !names.is_empty() && !names.contains(&(*name).to_owned()) {
            continue;
        }
        // A new server, so that no case inherits another's threads.
        let take = |program: PathBuf| {
            let server = server::ModelServer::start(room.path(), program)?;
            case(&server).with_context(|| format!("the bench {name} failed"))
        };
        let mut earlier = None;
        if let Some(before) = before {
            writeln!(err, "{name}, before ...")?;
            // An earlier build need not know everything that is asked of this one.
            let rows = take(before.into()).or_else(|error| {
                writeln!(err, "{error:#}")?;
                anyhow::Ok(Vec::new())
            })?;
            earlier = Some(rows);
        }
        writeln!(err, "{name} ...")?;
        for row in take(daemon::program()?)? {
            writeln!(out, "{}", row.render(earlier.as_deref()))?;
        }
    }
    Ok(())
}

/// A folder for homes.
fn room() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("ctb").tempdir()
}

/// The machine.
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
