//! Replacing this process, and stopping the daemon's.

use rustix::process::{Pid, Signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Whether this is a program that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Becomes another program; answers only if that fails.
pub(crate) fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Starts a new session, so that closing the terminal or Ctrl-C does not end the
/// daemon.
pub(crate) fn leave_session() {
    // Fails only for a group leader, which already has a session.
    let _ = rustix::process::setsid();
}

/// Stops this job until its shell lets it go on. Where no shell would, the system
/// ignores it.
pub(crate) fn suspend() -> io::Result<()> {
    Ok(rustix::process::kill_current_process_group(Signal::TSTP)?)
}

/// Sends SIGTERM; a finished process is not an error.
pub(crate) fn terminate(pid: i32) -> io::Result<()> {
    match rustix::process::kill_process(process(pid)?, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn process(pid: i32) -> io::Result<Pid> {
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("not a process"))
}

/// Whether a process still does something. One that has ended, and whose
/// parent has not yet asked for it, does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(process) = process(pid) else {
        return false;
    };
    if rustix::process::test_kill_process(process).is_err() {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    // The state follows the name in parentheses, which may contain any character.
    let state = stat
        .as_deref()
        .ok()
        .and_then(|s| s.rsplit_once(") "))
        .map(|(_, rest)| rest);
    !state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombie_is_not_alive() {
        let mut child = Command::new("sh")
            .args(["-c", "read x"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child).as_raw_nonzero().get();
        assert!(is_alive(pid));
        drop(child.stdin.take());
        // Waits for the end without taking the body.
        rustix::process::waitid(
            rustix::process::WaitId::Pid(Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert!(!is_alive(pid));
        child.wait().unwrap();
        assert!(!is_alive(pid));
    }
}
