//! The mark that a guardian sets on itself and its descendants: a lower hard
//! limit of file locks (`ulimit -x`) than the daemon's.
//!
//! Fork and exec inherit limits, and only root may raise a hard one. So a process
//! cannot remove the mark by a double fork, a new session, a namespace or the end of
//! a parent, not even after guardian and daemon have ended. This limit has no other
//! effect: Linux has not counted locks since 2.4.25.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The marked limit if the daemon's is unlimited; any finite number works. It is large because
/// each nested daemon lowers it by one.
const MARKED: u64 = 1 << 20;

/// The beginning of the line in `/proc/PID/limits`.
const LINE: &str = "Max file locks";

/// The hard limit of this process; unlimited is `u64::MAX`.
pub(crate) fn own() -> u64 {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX)
}

/// Marks this process and its future descendants irrevocably.
pub(crate) fn mark_this_process() -> io::Result<()> {
    let lower = Some(own().saturating_sub(1).min(MARKED));
    Ok(setrlimit(
        Resource::Locks,
        Rlimit {
            current: lower,
            maximum: lower,
        },
    )?)
}

/// Parses the hard limit from `/proc/PID/limits`.
pub(crate) fn parse(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    match line.split_ascii_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_this_process_has() {
        let limits = std::fs::read_to_string("/proc/self/limits").expect("readable");
        assert_eq!(parse(&limits), Some(own()));
    }

    #[test]
    fn a_line_that_is_missing_or_cut_is_no_limit() {
        assert_eq!(
            parse("Max file locks            5      7      locks"),
            Some(7)
        );
        for cut in ["", "Max file locks", "Max file locks   unlimited"] {
            assert_eq!(parse(cut), None, "{cut}");
        }
    }
}
