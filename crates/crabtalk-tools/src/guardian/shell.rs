//! Starts the shell of a command, in the sandbox or outside.

use super::frame::{self, Start};
use super::scratch::Scratch;
use super::{RESTRICTED_ARGUMENT, restricted};
use crate::sandbox::SandboxPolicy;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The kernel takes single arguments up to 128 KiB; longer commands go
/// through a file.
const MAX_ARGUMENT_BYTES: usize = 100 << 10;

/// A shell at work.
pub(super) struct Shell {
    /// The process that ends when the shell does.
    pub(super) process: i32,
    /// Kept for as long as the command runs.
    _scratch: Option<Scratch>,
}

pub(super) fn start(start: Start) -> Result<Shell, String> {
    let is_long = start.command.len() > MAX_ARGUMENT_BYTES;
    let scratch = (start.sandbox.is_some() || is_long)
        .then(Scratch::make)
        .transpose()
        .map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let arguments = match &scratch {
        Some(scratch) if is_long => {
            let file = scratch.path().join("command");
            std::fs::write(&file, &start.command)
                .map_err(|e| format!("cannot write the command to {}: {e}", file.display()))?;
            vec![file.to_string_lossy().into_owned()]
        }
        _ => vec!["-c".to_owned(), start.command],
    };
    let process = match (start.sandbox, &scratch) {
        (Some(policy), Some(scratch)) => start_restricted(policy, arguments, scratch)?,
        (_, _) => start_free(&arguments)?,
    };
    Ok(Shell {
        process,
        _scratch: scratch,
    })
}

/// Starts `bash`, or `sh` where there is none.
fn start_free(arguments: &[String]) -> Result<i32, String> {
    let start = |program: &str| {
        // A group of its own: `kill 0` in the shell must not hit the guardian.
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
    };
    let shell = match start("bash") {
        Err(e) if e.kind() == io::ErrorKind::NotFound => start("sh"),
        other => other,
    };
    shell
        .map(|child| child.id().cast_signed())
        .map_err(|e| format!("cannot start the shell: {e}"))
}

fn failed(e: io::Error) -> String {
    format!("cannot start the sandboxed shell: {e}")
}

/// Starts a process of this very program that restricts itself and becomes
/// the shell; it says over its stdin when it could not.
fn start_restricted(
    mut policy: SandboxPolicy,
    arguments: Vec<String>,
    scratch: &Scratch,
) -> Result<i32, String> {
    policy.write.push(scratch.spot().clone());
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg(RESTRICTED_ARGUMENT)
        .env("TMPDIR", OsStr::new(scratch.path()))
        .stdin(OwnedFd::from(theirs))
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    frame::write(&mut ours, &restricted::Task { policy, arguments }).map_err(failed)?;
    let mut why = String::new();
    // Closed by the kernel at the moment in which it becomes the shell.
    ours.read_to_string(&mut why).map_err(failed)?;
    if why.is_empty() {
        Ok(child.id().cast_signed())
    } else {
        Err(why)
    }
}
