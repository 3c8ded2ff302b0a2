//! Sessions, jobs, and the end of the daemon's process.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io;
use std::path::Path;
use tokio::net::unix::pipe::Receiver;

/// Whether a file is an executable program.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Starts a new session, so that closing the terminal or Ctrl-C does not end the
/// daemon.
pub(crate) fn leave_session() {
    // Fails only for a group leader, which already has a session.
    let _ = rustix::process::setsid();
}

/// Stops this job until its shell continues it. The system ignores this if no shell
/// could.
pub(crate) fn suspend() -> io::Result<()> {
    Ok(rustix::process::kill_current_process_group(Signal::TSTP)?)
}

/// Ends a process by SIGTERM and waits for its end.
pub(crate) async fn end(pid: i32) -> io::Result<()> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("not a process"))?;
    let process = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Err(Errno::SRCH) => return Ok(()),
        opened => opened?,
    };
    match pidfd_send_signal(&process, Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    // A pidfd is readable once all threads have ended; any pollable descriptor can be used as a
    // pipe receiver.
    let process = Receiver::from_file_unchecked(File::from(process))?;
    process.readable().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn process_is_ended_even_if_nobody_waits_for_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        end(pid).await.unwrap();
        assert!(!child.wait().unwrap().success());
        end(pid).await.unwrap();
    }
}
