//! Ends the processes of a guardian that was killed.
//!
//! A command may kill its guardian; its processes are then re-parented to
//! the daemon, which is a reaper of descendants as well. Such an orphan is
//! known by the mark that every guardian puts on what it starts.
//! Invariant: a child that this program started without a guardian is left
//! alone, as long as it stays in this process's session.

use crate::mark;
use crate::processes::{self, Process, Stat};
use rustix::process::{Pid, Signal, WaitOptions, geteuid, kill_process_group, waitpid};
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long a sweep lasts; the next one continues it. A busy machine ends some
/// hundred processes in that time.
const SWEEP_FOR: Duration = Duration::from_secs(20);

/// Wait for the end of one killed orphan before the next one is tried.
const ORPHAN_WAIT: Duration = Duration::from_millis(50);

/// The guardians that this process started; by them it knows the orphans of a
/// killed one. Clones share the register.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Register>);

#[derive(Debug, Default)]
struct Register {
    /// Whether orphans fall to this process, so that sweeping makes sense.
    adopts: bool,
    known: Mutex<HashSet<Process>>,
    /// The limit that a child has if it is not marked. Taken once: a command
    /// may lower this process's own later on.
    unmarked: u64,
}

/// Keeps a child known; dropped after the child was waited for.
#[derive(Debug)]
pub struct Known {
    register: Arc<Register>,
    process: Option<Process>,
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            self.register.known().remove(&process);
        }
    }
}

impl Register {
    fn known(&self) -> MutexGuard<'_, HashSet<Process>> {
        // Nothing under this lock can leave the set half-changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a sweep.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Orphans that were ended.
    pub ended: usize,
    /// Orphans that would not end, those of other users mostly.
    pub left: Vec<i32>,
}

impl Children {
    /// Makes this process the one that orphans fall to. The daemon calls it
    /// once, at its start; children that exist by then stay known.
    pub fn adopt() -> io::Result<Self> {
        rustix::process::set_child_subreaper(Pid::from_raw(1))?;
        let children = processes::numbers_of_children(own_pid())?;
        let known = children
            .into_iter()
            .filter_map(|number| Process::of(number).ok())
            .collect();
        Ok(Self(Arc::new(Register {
            adopts: true,
            known: Mutex::new(known),
            unmarked: mark::own(),
        })))
    }

    /// Starts a child that no sweep will touch while the guard lives.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Child, Known)> {
        // Held over the fork, so that no sweep sees a child not yet known.
        let mut known = self.0.known();
        let child = command.spawn()?;
        let process = child
            .id()
            .and_then(|pid| Process::of(pid.cast_signed()).ok());
        known.extend(process);
        drop(known);
        Ok((
            child,
            Known {
                register: Arc::clone(&self.0),
                process,
            },
        ))
    }

    /// Ends every orphan, and what falls to this process while doing so; answers what
    /// was ended and what is left.
    pub async fn sweep(&self) -> Swept {
        if !self.0.adopts {
            return Swept::default();
        }
        let register = Arc::clone(&self.0);
        let swept = tokio::task::spawn_blocking(move || register.sweep())
            .await
            .unwrap_or_default();
        if swept != Swept::default() {
            tracing::warn!(ended = swept.ended, left = ?swept.left, "ended processes whose guardian was killed");
        }
        swept
    }

    /// Sweeps whenever a child ends, until dropped: catches orphans whose
    /// guardian was not one of the tools'.
    ///
    /// # Errors
    /// SIGCHLD cannot be received.
    pub async fn watch(&self) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut ended = signal(SignalKind::child())?;
        while ended.recv().await.is_some() {
            self.sweep().await;
        }
        Ok(())
    }
}

impl Register {
    /// Ends orphans in rounds, since the children of what was ended fall to us.
    /// A round reads this process's own children only, so that its cost does not
    /// grow with other processes.
    fn sweep(&self) -> Swept {
        let mut swept = Swept::default();
        let give_up = Instant::now() + SWEEP_FOR;
        loop {
            let orphans = self.orphans();
            let killed: Vec<bool> = orphans.iter().map(|orphan| kill(*orphan)).collect();
            let before = swept.ended;
            swept.left.clear();
            for orphan in orphans {
                if reap(orphan, give_up) {
                    swept.ended += 1;
                } else {
                    swept.left.push(orphan.pid);
                }
            }
            // Processes that may not be killed are another user's.
            let hopeless = swept.ended == before && !killed.contains(&true);
            if hopeless || Instant::now() > give_up {
                return swept;
            }
        }
    }

    /// Children that a guardian had.
    fn orphans(&self) -> Vec<Process> {
        let known = self.known();
        let numbers = processes::numbers_of_children(own_pid()).unwrap_or_default();
        numbers
            .into_iter()
            .filter_map(|number| Stat::of(number).ok())
            .filter(|child| !known.contains(&child.process) && self.was_guarded(child))
            .map(|child| child.process)
            .collect()
    }

    /// Whether a guardian started it, or what started it: then it bears the
    /// mark. Root can take that off, but no process can enter another session, and
    /// guardians leave this process's session first of all.
    fn was_guarded(&self, child: &Stat) -> bool {
        let limits = processes::limits(child.process.pid).ok();
        let limit = limits.and_then(|limits| mark::parse(&limits));
        limit.is_some_and(|limit| limit < self.unmarked)
            || (geteuid().is_root() && !is_in_own_session(child))
    }
}

/// Kills an orphan, and its whole group in one step, so that forks within it do
/// not escape. Returns whether the orphan itself may be killed.
fn kill(orphan: Process) -> bool {
    let killed = orphan.signal(Signal::KILL).is_ok();
    // It is ours to wait for and was not, so it keeps its number and its group.
    // Another session than ours holds nothing but what a command started:
    // sessions are made, never entered.
    let Ok(stat) = Stat::of(orphan.pid) else {
        return killed;
    };
    if stat.process == orphan
        && !is_in_own_session(&stat)
        && let Some(group) = Pid::from_raw(stat.group)
    {
        let _ = kill_process_group(group, Signal::KILL);
    }
    killed
}

/// Takes a killed child off the process table; `false` if it does not end.
fn reap(orphan: Process, give_up: Instant) -> bool {
    let pid = Pid::from_raw(orphan.pid);
    let gone = || {
        matches!(
            waitpid(pid, WaitOptions::NOHANG),
            Ok(Some(_)) | Err(rustix::io::Errno::CHILD)
        )
    };
    if gone() {
        return true;
    }
    if let Ok(handle) = orphan.open() {
        let left = give_up.saturating_duration_since(Instant::now());
        let _ = handle.wait(ORPHAN_WAIT.min(left));
    }
    gone()
}

/// An unknown session counts as this one, so that no process is ended by a guess.
fn is_in_own_session(child: &Stat) -> bool {
    Stat::of(own_pid()).map_or(true, |own| own.session == child.session)
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// Keeps this process's memory and environment, provider keys included, from
/// other processes of the same user; commands of agents are such. Root sees
/// them all the same. The price: no core dumps, no debugger. The daemon calls
/// it once, at its start.
pub fn conceal() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
