//! Everything that an agent started, ended.
//!
//! A program of an agent may leave its window's session and outlive it. All of
//! them inherit a mark in their environment, by which they are found again.
//!
//! Invariant: a signal goes to a process that was seen to bear the mark, through
//! a handle that cannot come to mean another one.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Bears the mark.
pub(crate) const MARK: &str = "CRABTALK_TERMINAL_LIFE";

/// How long programs may take to end when they are asked to.
const POLITE: Duration = Duration::from_millis(1500);

/// How long the system may take to end what was killed.
const HARD: Duration = Duration::from_secs(3);

/// Pause between two searches.
const PAUSE: Duration = Duration::from_millis(20);

/// Most of an environment that is read; Linux allows more.
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Ends everything that bears a mark, politely and then hard; how many are left.
pub(crate) async fn end(life: &str) -> usize {
    if life.is_empty() {
        return 0;
    }
    for (signal, wait) in [(Signal::TERM, POLITE), (Signal::KILL, HARD)] {
        let deadline = tokio::time::Instant::now() + wait;
        let mut left = signal_all(life, Some(signal));
        while left > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
            // Later children are signalled, too.
            let again = (signal == Signal::KILL).then_some(signal);
            left = signal_all(life, again);
        }
        if left == 0 {
            return 0;
        }
    }
    signal_all(life, None)
}

/// Signals all that bear the mark; how many there are.
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
        // The handle first, then the mark again: now both are of one process.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if bears(pid, mark.as_bytes()) {
            found += 1;
            if let Some(signal) = signal {
                // One that has just ended needs no signal.
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
