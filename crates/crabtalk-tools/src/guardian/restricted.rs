//! The process that restricts itself and then becomes the shell.
//!
//! It is a process of its own because restricting between fork and exec
//! would need unsafe code.

use super::frame;
use crate::sandbox::{Fence, SandboxPolicy, filter};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What it is told over its stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) policy: SandboxPolicy,
    /// The shell's arguments.
    pub(super) arguments: Vec<String>,
}

pub(super) fn main() -> ExitCode {
    // The copy is closed by exec, which is how the guardian learns of it.
    let Ok(control) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut control = UnixStream::from(control);
    let why = match become_shell(&mut control) {
        Ok(never) => match never {},
        Err(why) => why,
    };
    let _ = control.write_all(why.as_bytes());
    ExitCode::FAILURE
}

/// Returns only when it failed.
fn become_shell(control: &mut UnixStream) -> Result<std::convert::Infallible, String> {
    let failed = |e: io::Error| format!("cannot start the sandboxed shell: {e}");
    let task: Task = frame::read(control).map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
    let mut fence = Fence::new(task.policy.landlock)?;
    fence.open_policy(&task.policy)?;
    fence.open_shared()?;
    fence.close()?;
    filter(task.policy.network, false)?;
    let mut error = Command::new("bash").args(&task.arguments).exec();
    if error.kind() == io::ErrorKind::NotFound {
        error = Command::new("sh").args(&task.arguments).exec();
    }
    Err(failed(error))
}
