//! `crabtalk nexus ...`: the supervisor and the commands to it.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The sandbox of a terminal agent is set up by this program, too.
    crabtalk_guardian::enter().unwrap_or_else(crabtalk_nexus::cli::main)
}
