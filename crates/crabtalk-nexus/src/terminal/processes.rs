//! Ends all processes of an agent.
//!
//! A program of an agent may leave its window's session and outlive it. All its processes
//! inherit an environment variable, by which they are found.
//!
//! Invariant: a signal is sent only to a process whose environment has the mark, through
//! a pidfd, which cannot refer to another process.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// The environment variable with the mark.
pub(crate) const MARK: &str = "CRABTALK_TERMINAL_LIFE";

/// Time for programs to end after SIGTERM.
const POLITE: Duration = Duration::from_millis(1500);

/// Time for the system to end killed processes.
const HARD: Duration = Duration::from_secs(3);

/// Pause between two searches.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum bytes read of an environment; Linux allows more.
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Ends all processes with a mark, by SIGTERM and then SIGKILL; returns how many are left.
pub(crate) async fn end(life: &str) -> usize {
    if life.is_empty() {
        return 0;
    }
    for (signal, wait) in [(Signal::TERM, POLITE), (Signal::KILL, HARD)] {
        let deadline = tokio::time::Instant::now() + wait;
        let mut left = signal_all(life, Some(signal));
        while left > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
            // Children that appear later are also signalled.
            let again = (signal == Signal::KILL).then_some(signal);
            left = signal_all(life, again);
        }
        if left == 0 {
            return 0;
        }
    }
    signal_all(life, None)
}

/// Signals all processes with the mark; returns their number.
fn signal_all(life: &str, signal: Option<Signal>) -> usize {
    let mark = format!("{MARK}={life}");
    let Ok(all) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let mut found = 0;
    for entry in all.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        if !bears(pid, mark.as_bytes()) {
            continue;
        }
        // Opens the pidfd first and then checks the mark, so that both belong to one process.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if bears(pid, mark.as_bytes()) {
            found += 1;
            if let Some(signal) = signal {
                // A process that just ended needs no signal.
                let _ = pidfd_send_signal(&handle, signal);
            }
        }
    }
    found
}

fn bears(pid: Pid, mark: &[u8]) -> bool {
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut text = Vec::new();
    let read = file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut text);
    read.is_ok() && text.split(|&byte| byte == 0).any(|entry| entry == mark)
}
