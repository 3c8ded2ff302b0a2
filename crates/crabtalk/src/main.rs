//! The one binary: `crabtalk daemon run` hosts the daemon, `__guardian`
//! watches over a tool's processes, everything else is the client.

mod host;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = host::enter() {
        return code;
    }
    crabtalk_cli::main(std::env::args_os(), &host::HOST)
}
