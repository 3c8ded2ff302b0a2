//! Chores of the workspace: `cargo xtask`.

mod layers;

use anyhow::bail;
use std::io::Write;

const USAGE: &str = "usage: cargo xtask layers    check which crate imports which";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["layers"] => {
            let problems = layers::problems()?;
            if !problems.is_empty() {
                bail!("{}", problems.join("\n"));
            }
            writeln!(std::io::stdout(), "every crate imports what it may")?;
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}
