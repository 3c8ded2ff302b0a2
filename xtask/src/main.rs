//! Chores of the workspace: `cargo xtask`.

mod attack;
mod bench;
mod circles;
mod endurance;
mod layers;
mod pictures;

use anyhow::bail;
use std::io::Write;

const USAGE: &str = "usage: cargo xtask CHORE

  layers                    check which crate and which file imports which
  bench [--before COMMIT|PROGRAM] [NAME..]
                            measure the daemon, beside an earlier one; a table on stdout
  torture [KILLS [SEED]]    kill it at random instants under load
  crash [POINTS [SEED]]     kill it at every call that changes a file
  chaos [MINUTES] [SEED]    let components die and hang, and write what that leaves
  soak [MINUTES]            let clients misbehave, and draw what that costs
  attack [MINUTES [SEED]]   run generated commands in the sandbox beside canaries
  draw                      draw docs/soak.csv again
  pictures                  take pictures of the chat for the README";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((chore, rest)) = arguments.split_first() else {
        bail!("{USAGE}");
    };
    match (chore.as_str(), rest) {
        ("layers", []) => {
            let mut problems = layers::problems()?;
            problems.extend(circles::problems()?);
            if !problems.is_empty() {
                bail!("{}", problems.join("\n"));
            }
            writeln!(
                std::io::stdout(),
                "no forbidden import, and no import cycle among files"
            )?;
            Ok(())
        }
        ("bench", names) => bench::build_and_run(names),
        ("torture", []) => endurance::torture(None, None),
        ("torture", [kills]) => endurance::torture(Some(kills), None),
        ("torture", [kills, seed]) => endurance::torture(Some(kills), Some(seed)),
        ("crash", []) => endurance::crash(None, None),
        ("crash", [points]) => endurance::crash(Some(points), None),
        ("crash", [points, seed]) => endurance::crash(Some(points), Some(seed)),
        ("chaos", []) => endurance::chaos(None, None),
        ("chaos", [minutes]) => endurance::chaos(Some(minutes), None),
        ("chaos", [minutes, seed]) => endurance::chaos(Some(minutes), Some(seed)),
        ("soak", []) => endurance::soak(None),
        ("soak", [minutes]) => endurance::soak(Some(minutes)),
        ("attack", []) => attack::run(None, None),
        ("attack", [minutes]) => attack::run(Some(minutes), None),
        ("attack", [minutes, seed]) => attack::run(Some(minutes), Some(seed)),
        ("draw", []) => endurance::draw(),
        ("pictures", []) => pictures::take(),
        // `bench` has cargo run this, in a release build.
        ("bench-here", names) => bench::run(names),
        ("model-server", []) => bench::server::serve(),
        ("relay", [socket, server]) => bench::floor::serve(socket.as_ref(), server),
        _ => bail!("{USAGE}"),
    }
}
