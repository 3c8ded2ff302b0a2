//! The guardian's main loop: starts the process, waits, ends the tree, reports.

use super::descriptors::Stdio;
use super::frame::{self, Report, Start};
use super::leftovers::Leftovers;
use super::start;
use crate::{mark, processes};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Time for descendants to end after SIGTERM. Together with [`KILL_FOR`] it stays below the
/// second within which a cancelled run must leave no process.
const GRACE: Duration = Duration::from_millis(200);

/// Time for which killing is repeated before the rest is reported.
const KILL_FOR: Duration = Duration::from_millis(600);

/// Time that one round of killing waits.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// Events of the guardian.
pub(super) enum Event {
    /// The process has ended; `alone` if it had no remaining descendants.
    Ended { status: WaitStatus, alone: bool },
    /// All descendants have ended.
    NothingLeft,
    /// The daemon closed the socket or ended, or the terminal hung up.
    Closed,
}

pub(super) fn main() -> ExitCode {
    let mut control = match control() {
        Ok(control) => control,
        Err(e) => {
            let _ = writeln!(io::stderr(), "only the daemon starts a guardian: {e}");
            return ExitCode::FAILURE;
        }
    };
    let report = match guard(&mut control) {
        Ok(report) => report,
        Err(why) => Report::NotStarted { why },
    };
    // Fails only if the daemon is gone.
    let _ = frame::write(&mut control, &report);
    ExitCode::SUCCESS
}

fn control() -> io::Result<UnixStream> {
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    control.peer_addr()?;
    Ok(control)
}

fn guard(control: &mut UnixStream) -> Result<Report, String> {
    // Fails only for a group leader, which has its own session; signals to the daemon's terminal must not reach the guardian.
    let _ = rustix::process::setsid();
    let streams = Stdio::receive(&*control).map_err(|e| format!("received no streams: {e}"))?;
    let start: Start = frame::read(control).map_err(|e| format!("received no command: {e}"))?;
    attend(start, streams, false, |tell| watch_control(control, tell))
}

/// Starts the process, waits for its end or for [`Event::Closed`] from `watch`,
/// and ends the tree.
pub(super) fn attend(
    start: Start,
    streams: Stdio,
    terminal: bool,
    watch: impl FnOnce(SyncSender<Event>) -> io::Result<()>,
) -> Result<Report, String> {
    // Must precede any start: the daemon recognises orphans by the mark.
    mark::mark_this_process()
        .map_err(|e| format!("cannot mark the processes of the command: {e}"))?;
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
        .map_err(|e| format!("cannot become the reaper of descendants: {e}"))?;
    limit_files(start.open_files);
    // One per source and one spare: senders never block.
    let (tell, events) = sync_channel(4);
    // Must precede the start: without these threads the process would never be ended.
    let started = watch_children(tell.clone())
        .and_then(|started| watch(tell).map(|()| started))
        .map_err(|e| format!("cannot start a thread that watches the command: {e}"))?;
    let absent = start.sandbox.as_ref().map(|policy| policy.absent.clone());
    let absent = absent.unwrap_or_default();
    let leftovers = Leftovers::watch(&absent);
    let guarded = start::start(start, streams, terminal)?;
    // The thread waits for the process id.
    let _ = started.send(guarded.process);
    let (status, left) = wait_and_end(&events);
    leftovers.remove();
    let seen = status.map(|s| (s.exit_status(), s.terminating_signal()));
    let (code, signal) = guarded.ended().or(seen).unwrap_or_default();
    Ok(Report::Ended { code, signal, left })
}

/// Restores the soft limit that the daemon was started with.
fn limit_files(open_files: Option<u64>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if open_files.is_some() && open_files != limit.current {
        let lower = Rlimit {
            current: open_files,
            ..limit
        };
        // Fails only above the hard limit, which is then low enough.
        let _ = setrlimit(Resource::Nofile, lower);
    }
}

/// Waits for every child, including adopted ones, so that none stays a zombie; begins
/// when the process id is sent. The thread ends with the last child or with
/// this process.
fn watch_children(tell: SyncSender<Event>) -> io::Result<SyncSender<i32>> {
    let (started, guarded) = sync_channel(1);
    std::thread::Builder::new().spawn(move || {
        let Ok(guarded) = guarded.recv() else {
            return;
        };
        let mut ended: Option<WaitStatus> = None;
        loop {
            // After the end of the process, poll before blocking: mostly no process is left.
            let options = if ended.is_some() {
                WaitOptions::NOHANG
            } else {
                WaitOptions::empty()
            };
            let event = match rustix::process::wait(options) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == guarded => {
                    ended = Some(status);
                    continue;
                }
                Ok(Some(_)) | Err(Errno::INTR) => continue,
                Ok(None) => match ended.take() {
                    Some(status) => Event::Ended {
                        status,
                        alone: false,
                    },
                    None => continue,
                },
                Err(_) => match ended.take() {
                    Some(status) => Event::Ended {
                        status,
                        alone: true,
                    },
                    None => Event::NothingLeft,
                },
            };
            let last = matches!(event, Event::NothingLeft | Event::Ended { alone: true, .. });
            if tell.send(event).is_err() || last {
                return;
            }
        }
    })?;
    Ok(started)
}

/// Watches for the end of the daemon's side. The thread ends with the process.
fn watch_control(control: &UnixStream, tell: SyncSender<Event>) -> io::Result<()> {
    let mut control = control.try_clone()?;
    std::thread::Builder::new().spawn(move || {
        let mut byte = [0];
        loop {
            match control.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Fails only if everything has already ended.
        let _ = tell.send(Event::Closed);
    })?;
    Ok(())
}

/// Waits for the process's end or [`Event::Closed`], then ends the rest. Returns the exit
/// status, if known, and the processes that could not be ended.
fn wait_and_end(events: &Receiver<Event>) -> (Option<WaitStatus>, Vec<i32>) {
    let mut end = Ending {
        status: None,
        empty: false,
    };
    match events.recv() {
        Ok(event) => end.note(event),
        Err(_) => return (None, Vec::new()),
    }
    if end.empty {
        return (end.status, Vec::new());
    }
    let me = std::process::id().cast_signed();
    // Processes that cannot be listed get no SIGTERM; killing reports them.
    for process in processes::descendants_of(me).unwrap_or_default() {
        let _ = process.signal(Signal::TERM);
        // A stopped process would not handle the signal.
        let _ = process.signal(Signal::CONT);
    }
    end.await_empty(events, GRACE);
    let give_up = Instant::now() + KILL_FOR;
    let mut left = Vec::new();
    while !end.empty && Instant::now() < give_up {
        left = processes::kill_below(me).unwrap_or_default();
        end.await_empty(events, KILL_ROUND);
    }
    if end.empty {
        left.clear();
    }
    (end.status, left)
}

struct Ending {
    status: Option<WaitStatus>,
    empty: bool,
}

impl Ending {
    fn note(&mut self, event: Event) {
        match event {
            Event::Ended { status, alone } => {
                self.status = Some(status);
                self.empty |= alone;
            }
            Event::NothingLeft => self.empty = true,
            Event::Closed => {}
        }
    }

    fn await_empty(&mut self, events: &Receiver<Event>, limit: Duration) {
        let until = Instant::now() + limit;
        while !self.empty {
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => self.note(event),
                Err(RecvTimeoutError::Timeout) => return,
                // Both threads have ended; the one for the children ends last.
                Err(RecvTimeoutError::Disconnected) => self.empty = true,
            }
        }
    }
}
