//! Ends the processes of a guardian that was killed.
//!
//! A command may kill its guardian; its processes are then re-parented to
//! the daemon, which is also a reaper. Such an orphan is
//! recognised by the mark that every guardian sets on its descendants.
//! Invariant: a child that this program started without a guardian is not
//! touched as long as it stays in this process's session.

use crate::mark;
use crate::processes::{self, Process, Stat};
use rustix::process::{Pid, Signal, WaitOptions, geteuid, kill_process_group, waitpid};
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Duration of a sweep; the next one continues it. A busy machine ends some
/// hundred processes in that time.
const SWEEP_FOR: Duration = Duration::from_secs(20);

/// Wait for the end of one killed orphan before the next one is tried.
const ORPHAN_WAIT: Duration = Duration::from_millis(50);

/// The guardians that this process started, to tell them from orphans. Clones
/// share the register.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Register>);

#[derive(Debug, Default)]
struct Register {
    /// Whether orphans are re-parented to this process; otherwise sweeps do nothing.
    adopts: bool,
    known: Mutex<HashSet<Process>>,
    /// The limit of an unmarked child, read once, because a command may lower this process's own
    /// limit later.
    unmarked: u64,
}

/// Registers a child until this guard is dropped, which happens after the child was waited for.
#[derive(Debug)]
pub struct Registration {
    register: Arc<Register>,
    process: Option<Process>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            self.register.known().remove(&process);
        }
    }
}

impl Register {
    fn known(&self) -> MutexGuard<'_, HashSet<Process>> {
        // A panic under this lock cannot leave the set inconsistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a sweep.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Orphans that were ended.
    pub ended: usize,
    /// Orphans that could not be ended, mostly those of other users.
    pub left: Vec<i32>,
}

impl Children {
    /// Makes this process the reaper of orphans. The daemon calls it
    /// once, at its start; children that exist at that time stay registered.
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

    /// Starts a child that no sweep touches while the guard exists.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Child, Registration)> {
        // Locked over the fork, so that no sweep finds an unregistered child.
        let mut known = self.0.known();
        let child = command.spawn()?;
        let process = child
            .id()
            .and_then(|pid| Process::of(pid.cast_signed()).ok());
        known.extend(process);
        drop(known);
        Ok((
            child,
            Registration {
                register: Arc::clone(&self.0),
                process,
            },
        ))
    }

    /// Ends every orphan, and processes that this re-parents to this one; reports the ended
    /// and the remaining ones.
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

    /// Sweeps whenever a child ends, until dropped. It catches orphans of guardians that
    /// the tools did not start.
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
    /// Ends orphans in rounds, since the children of ended processes are re-parented to this one.
    /// A round reads only this process's own children, so that its cost does not
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
            // Processes that may not be killed belong to another user.
            let hopeless = swept.ended == before && !killed.contains(&true);
            if hopeless || Instant::now() > give_up {
                return swept;
            }
        }
    }

    /// Children that descend from a guardian.
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

    /// Whether a guardian or its descendant started the child: then it has the mark or, since root
    /// can remove the mark, another session. Guardians leave this process's session first,
    /// and no process can enter another session.
    fn was_guarded(&self, child: &Stat) -> bool {
        let limits = processes::limits(child.process.pid).ok();
        let limit = limits.and_then(|limits| mark::parse(&limits));
        limit.is_some_and(|limit| limit < self.unmarked)
            || (geteuid().is_root() && !is_in_own_session(child))
    }
}

/// Kills an orphan and its whole group in one step, so that forks in the group do not
/// escape. Returns whether the orphan may be killed.
fn kill(orphan: Process) -> bool {
    let killed = orphan.signal(Signal::KILL).is_ok();
    // This process has not waited for it, so its id and group are still valid.
    // Another session contains only descendants of commands:
    // a process can create a session but not enter one.
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

/// Reaps a killed child; `false` if it does not end.
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

/// Whether a child is in this process's session; an unknown session counts as this one, so that no process is ended by mistake.
fn is_in_own_session(child: &Stat) -> bool {
    Stat::of(own_pid()).map_or(true, |own| own.session == child.session)
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// Hides this process's memory and environment, including provider keys, from
/// other processes of the same user, such as agents' commands, but not from root. The price:
/// no core dumps, no debugger. The daemon calls
/// it once, at its start.
pub fn conceal() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
