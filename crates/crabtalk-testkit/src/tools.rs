//! Optional programs of tests.
//!
//! Invariant: a test that lacks one is skipped by name, past the capture of its output; with
//! `CRABTALK_REQUIRE_TOOLS=1`, as `.ci/run` sets it, it fails instead.

use std::io::Write;
use std::path::PathBuf;

/// Environment variable that forbids skipping.
const REQUIRED: &str = "CRABTALK_REQUIRE_TOOLS";

/// Whether programs are in `PATH`; skips the test if not.
pub fn has_tools(test: &str, programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| {
        let mut folders = std::env::split_paths(&path);
        folders.any(|folder| folder.join(program).is_file())
    };
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

/// The value of a variable that `.ci/run` sets; skips the test without it.
pub fn installed(test: &str, variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        skipped(test, &format!("{variable} is not set"));
    }
    found
}

/// Reports that a test is skipped for lack of an installable program.
///
/// # Panics
/// Skipping is forbidden.
pub fn skipped(test: &str, reason: &str) {
    assert!(
        std::env::var_os(REQUIRED).is_none_or(|value| value != "1"),
        "{test}: {reason}, and {REQUIRED} forbids skipping"
    );
    skip(test, reason);
}

/// Reports that a test, or a part of it, is skipped for a reason that no installation
/// can change: the kernel, or the user's rights.
///
/// # Panics
/// Standard error cannot be written.
pub fn skip(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {test}: {reason}").expect("standard error is there");
}
