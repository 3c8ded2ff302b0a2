//! `crabtalk nexus ...`: the supervisor and the commands to it.

use std::process::ExitCode;

fn main() -> ExitCode {
    // This program also runs as the guardian of sandboxed terminal agents.
    crabtalk_guardian::enter().unwrap_or_else(crabtalk_nexus::cli::main)
}
