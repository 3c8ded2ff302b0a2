//! Chores of the workspace: `cargo xtask`.

mod bench;
mod layers;

use anyhow::bail;
use std::io::Write;

const USAGE: &str = "usage: cargo xtask CHORE

  layers            check which crate imports which
  bench [NAME..]    measure the daemon; a table on stdout";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((chore, rest)) = arguments.split_first() else {
        bail!("{USAGE}");
    };
    match (chore.as_str(), rest) {
        ("layers", []) => {
            let problems = layers::problems()?;
            if !problems.is_empty() {
                bail!("{}", problems.join("\n"));
            }
            writeln!(std::io::stdout(), "every crate imports what it may")?;
            Ok(())
        }
        ("bench", names) => bench::rebuilt(names),
        // Of the two that follow, cargo runs the first and the first the second.
        ("bench-here", names) => bench::run(names),
        ("model-server", []) => bench::server::serve(),
        _ => bail!("{USAGE}"),
    }
}
