//! The mark that a guardian puts on itself and its descendants: a lower hard
//! limit of file locks (`ulimit -x`) than the daemon has.
//!
//! The kernel passes limits on over fork and exec, and only root may raise a
//! hard one. So no double fork, no session, no
//! namespace and no end of a parent sheds the mark, nor the end of guardian
//! and daemon. Of all limits this is the one that has no effect: Linux has
//! counted no locks since 2.4.25.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The limit in place of an unlimited one: any finite number would do.
/// Far from zero, since a daemon that a command starts goes down by one.
const MARKED: u64 = 1 << 20;

/// How `/proc/PID/limits` begins the line.
const LINE: &str = "Max file locks";

/// The hard limit of this process; unlimited is the largest number.
pub(crate) fn own() -> u64 {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX)
}

/// Marks this process and its future descendants; it cannot be undone.
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

/// The hard limit in the text of `/proc/PID/limits`.
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
