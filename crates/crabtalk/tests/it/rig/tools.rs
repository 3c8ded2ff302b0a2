//! Programs that not every machine has.

use std::process::{Command, Stdio};

/// Whether programs are there. A test that lacks one is skipped by name; with
/// `CRABTALK_REQUIRE_TOOLS=1`, as `.ci/run` sets it, it fails instead.
pub(crate) fn has_tools(test: &str, programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| !is_there(program))
        .collect();
    if missing.is_empty() {
        return true;
    }
    skipped(test, &format!("{} not installed", missing.join(", ")));
    false
}

/// Skips a test by name for something else than a program.
pub(crate) fn skip(test: &str, reason: &str) {
    println!("SKIPPED: {test}: {reason}");
}

/// Says that a test is skipped, where that is allowed.
pub(crate) fn skipped(test: &str, reason: &str) {
    assert!(
        std::env::var_os("CRABTALK_REQUIRE_TOOLS").is_none_or(|v| v != "1"),
        "{test}: {reason}, and CRABTALK_REQUIRE_TOOLS forbids skipping"
    );
    println!("SKIPPED: {test}: {reason}");
}

fn is_there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
