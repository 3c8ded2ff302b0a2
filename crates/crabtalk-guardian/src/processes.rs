//! Parents and descendants of processes, from `/proc`.
//!
//! Invariant: a process is identified by id and start time, so that a reused id is never
//! signalled.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Rounds of stopping a tree that continues to fork. A stopped parent cannot fork, so each
/// round leaves fewer processes.
const FREEZE_ROUNDS: u32 = 16;

/// A line of `/proc/PID/stat`: a name and 50 numbers, of 20 digits at most.
const MAX_STAT_BYTES: usize = 2048;

/// A process, distinct from later ones with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Start time in clock ticks since boot.
    started: u64,
}

/// Longest `/proc/PID/limits`: sixteen lines of eighty characters.
const MAX_LIMITS_BYTES: usize = 4096;

/// The parsed line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) process: Process,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    zombie: bool,
}

impl Stat {
    /// Reads the process that has this id now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let text = tell::<MAX_STAT_BYTES>(pid, "stat")?;
        Self::parse(pid, &text)
            .ok_or_else(|| io::Error::other(format!("cannot parse /proc/{pid}/stat")))
    }

    #[cfg(test)]
    pub(crate) fn for_test(pid: i32, started: u64, parent: i32) -> Self {
        Self {
            process: Process { pid, started },
            parent,
            group: pid,
            session: pid,
            zombie: false,
        }
    }

    /// Parses a line. The name in parentheses may contain anything, even parentheses.
    fn parse(pid: i32, text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        // starttime is field 22 of all, the 16th after the session.
        let started = fields.nth(15)?.parse().ok()?;
        let zombie = matches!(state, "Z" | "X" | "x");
        Some(Self {
            process: Process { pid, started },
            parent,
            group,
            session,
            zombie,
        })
    }
}

/// Reads a file with one system call instead of half a dozen, since every connection
/// reads its ancestors.
fn tell<const LIMIT: usize>(pid: i32, what: &str) -> io::Result<String> {
    let mut text = [0; LIMIT];
    let length = File::open(format!("/proc/{pid}/{what}"))?.read(&mut text)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// The limits of a process, as the kernel writes them.
pub(crate) fn limits(pid: i32) -> io::Result<String> {
    tell::<MAX_LIMITS_BYTES>(pid, "limits")
}

impl Process {
    /// Whether the process began at least one clock tick earlier.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.started < other.started
    }

    /// The process that has this id now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        Ok(Stat::of(pid)?.process)
    }

    /// Opens a handle to exactly this process.
    pub(crate) fn open(self) -> io::Result<Handle> {
        let pid = Pid::from_raw(self.pid).ok_or(io::ErrorKind::NotFound)?;
        let handle = Handle(pidfd_open(pid, PidfdFlags::empty())?);
        // The id may have been reused before the open.
        if Stat::of(self.pid)?.process == self {
            Ok(handle)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// Sends a signal, if the process still exists.
    pub(crate) fn signal(self, signal: Signal) -> io::Result<()> {
        match self.open().and_then(|handle| handle.signal(signal)) {
            Err(e) if is_gone(&e) => Ok(()),
            other => other,
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// A pidfd, which stays with one process even if its id is reused.
pub(crate) struct Handle(OwnedFd);

impl Handle {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, signal)?)
    }

    /// Waits until the process has ended or `limit` has passed.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<bool> {
        ends_within(self.0.as_fd(), limit)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether the process of a pidfd has ended.
pub(crate) fn has_ended(handle: BorrowedFd<'_>) -> io::Result<bool> {
    ends_within(handle, Duration::ZERO)
}

fn ends_within(handle: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let limit = Timespec {
        tv_sec: limit.as_secs().cast_signed(),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mut watched = [PollFd::from_borrowed_fd(handle, PollFlags::IN)];
    match poll(&mut watched, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// The ids of a process's children, including zombies.
pub(crate) fn numbers_of_children(pid: i32) -> io::Result<Vec<i32>> {
    // Most kernels have this file.
    if Path::new("/proc/thread-self/children").exists() {
        listed_children(pid)
    } else {
        searched_children(pid)
    }
}

/// Reads the children that each thread lists.
fn listed_children(pid: i32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // The children of an ended thread belong to another thread.
        let list = std::fs::read_to_string(thread?.path().join("children"));
        let list = list.unwrap_or_default();
        let numbers = list.split_ascii_whitespace();
        found.extend(numbers.filter_map(|number| number.parse::<i32>().ok()));
    }
    Ok(found)
}

/// Finds the children by a search through all processes.
fn searched_children(pid: i32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        // A process may end during the search.
        if let Some(number) = name.to_str().and_then(|n| n.parse().ok())
            && Stat::of(number).is_ok_and(|stat| stat.parent == pid)
        {
            found.push(number);
        }
    }
    Ok(found)
}

/// The children of a process, including zombies.
fn children_of(pid: i32) -> io::Result<Vec<Stat>> {
    let numbers = numbers_of_children(pid)?;
    let children = numbers.into_iter().filter_map(|n| Stat::of(n).ok());
    Ok(children.filter(|stat| stat.parent == pid).collect())
}

/// All living descendants of a process.
pub(crate) fn descendants_of(root: i32) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        // The children of an ended process have another parent.
        for stat in children_of(parent).unwrap_or_default() {
            open.push(stat.process.pid);
            if !stat.zombie {
                found.push(stat.process);
            }
        }
    }
    Ok(found)
}

/// Stops and then kills all descendants of a process; returns those that may not be
/// signalled. Stopping first keeps the tree from forking.
pub(crate) fn kill_below(root: i32) -> io::Result<Vec<i32>> {
    let mut stopped = HashSet::new();
    for _ in 0..FREEZE_ROUNDS {
        let mut more = false;
        for process in descendants_of(root)? {
            if stopped.insert(process) {
                more = true;
                // The kill below reports processes that may not be signalled.
                let _ = process.signal(Signal::STOP);
            }
        }
        if !more {
            break;
        }
    }
    let mut spared = Vec::new();
    for process in stopped {
        if process.signal(Signal::KILL).is_err() {
            spared.push(process.pid);
        }
    }
    Ok(spared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_hide_the_parent() {
        let line = "7 (a) R 1 (b)) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9001 0 0";
        let stat = Stat::parse(7, line).expect("parses");
        assert_eq!((stat.parent, stat.zombie), (42, false));
        assert_eq!(stat.process.started, 9001);
    }

    #[test]
    fn this_process_is_its_parents_child() {
        let me = i32::try_from(std::process::id()).expect("fits");
        let parent = Stat::of(me).expect("readable").parent;
        for find in [listed_children, searched_children] {
            assert!(find(parent).expect("found").contains(&me));
        }
    }

    #[test]
    fn a_reused_number_is_not_signalled() {
        let me = Process::of(i32::try_from(std::process::id()).expect("fits")).expect("readable");
        let other = Process {
            started: me.started + 1,
            ..me
        };
        // Without the comparison of start times, this would end the test.
        other
            .signal(Signal::KILL)
            .expect("ended processes are ignored");
    }
}
