//! Chores of the workspace: `cargo xtask`.

mod attack;
mod bench;
mod endurance;
mod layers;

use anyhow::bail;
use std::io::Write;

const USAGE: &str = "usage: cargo xtask CHORE

  layers                    check which crate imports which
  bench [--before PROGRAM] [NAME..]
                            measure the daemon, beside an earlier build; a table on stdout
  crash [POINTS [SEED]]     kill the daemon at every call that changes a file
  chaos [MINUTES [SEED]]    kill, stop and replace components under load
  soak [MINUTES]            let clients misbehave, and check memory and descriptors
  attack [MINUTES [SEED]]   run generated commands in the sandbox beside canaries";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((chore, rest)) = arguments.split_first() else {
        bail!("{USAGE}");
    };
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (chore.as_str(), words.as_slice()) {
        ("layers", []) => {
            let problems = layers::problems()?;
            if !problems.is_empty() {
                bail!("{}", problems.join("\n"));
            }
            writeln!(std::io::stdout(), "no forbidden import")?;
            Ok(())
        }
        ("bench", _) => bench::build_and_run(rest),
        ("crash" | "chaos" | "attack", [_, _, _, ..]) | ("soak", [_, _, ..]) => bail!("{USAGE}"),
        ("crash", _) => endurance::crash(words.first().copied(), words.get(1).copied()),
        ("chaos", _) => endurance::chaos(words.first().copied(), words.get(1).copied()),
        ("soak", _) => endurance::soak(words.first().copied()),
        ("attack", _) => attack::run(words.first().copied(), words.get(1).copied()),
        // `bench` has cargo run this, in a release build.
        ("bench-here", _) => bench::run(rest),
        ("model-server", []) => bench::server::serve(),
        ("relay", [socket, server]) => bench::floor::serve(socket.as_ref(), server),
        _ => bail!("{USAGE}"),
    }
}
