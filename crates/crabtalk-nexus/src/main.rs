//! `crabtalk nexus ...`: the supervisor and the commands to it.

use std::process::ExitCode;

fn main() -> ExitCode {
    crabtalk_nexus::cli::main()
}
