//! Traces a daemon and kills it at a system call that changes a file.
//!
//! Invariants: calls are counted over all threads, in the order in which they
//! begin; at the requested moment the tracer only kills;
//! a daemon ends with its tracer.

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The moment of a kill within a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the call has any effect.
    Before,
    /// After half of a write; the other half is never written.
    Half,
    /// After the call, before the daemon gets its result.
    After,
}

/// The point at which a daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    /// Number of the call, from 0.
    pub(crate) call: usize,
    pub(crate) moment: Moment,
}

/// A call that changes a file, or makes a change durable.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// Whether it writes more than one byte.
    pub(crate) writes: bool,
    /// The path, if known.
    pub(crate) path: String,
}

/// A traced daemon.
pub(crate) struct Followed {
    thread: JoinHandle<Vec<Call>>,
    over: Arc<AtomicBool>,
    pid: Pid,
}

impl Followed {
    /// Starts a program and traces it from its first call.
    pub(crate) fn start(command: &Command, point: Option<Point>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let (say, pid) = std::sync::mpsc::channel();
        let command = waiting(command);
        // The kernel identifies a tracer by its thread.
        let thread = std::thread::spawn(move || {
            let calls = Tracer::start(command, point, |pid| say.send(pid).unwrap()).follow();
            told.store(true, Ordering::SeqCst);
            calls
        });
        let pid = pid.recv().expect("the program starts");
        Self { thread, over, pid }
    }

    /// Whether the daemon has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Asks the daemon to end unless it was killed; returns its calls up to the kill.
    pub(crate) async fn end(self) -> Vec<Call> {
        // The daemon may have ended just now.
        let _ = kill(self.pid, Signal::SIGTERM);
        let ended = tokio::task::spawn_blocking(|| self.thread.join().unwrap());
        ended.await.unwrap()
    }
}

/// Whether this system permits tracing.
pub(crate) fn is_possible() -> bool {
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid::from_raw(sleeper.id().cast_signed());
    let possible = cfg!(target_arch = "x86_64") && ptrace::seize(pid, Options::empty()).is_ok();
    sleeper.kill().unwrap();
    // Its end is reported to the tracer and to its parent.
    sleeper.wait().unwrap();
    possible
}

/// The command in a shell that first waits for a line, so that it is traced
/// from the beginning.
fn waiting(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "read go; exec \"$0\" \"$@\" < /dev/null"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let set = |(name, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>)| {
        Some((name.to_owned(), value?.to_owned()))
    };
    let variables: Vec<(OsString, OsString)> = command.get_envs().filter_map(set).collect();
    shell.envs(variables);
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// The call in which a thread is.
struct Entered {
    call: Option<usize>,
    /// The path to record for the descriptor that the call returns.
    opens: Option<String>,
}

struct Tracer {
    pid: Pid,
    child: Child,
    point: Option<Point>,
    /// Calls that were entered but not left, by thread.
    entered: HashMap<Pid, Entered>,
    /// Writable descriptors of files, with their paths.
    files: HashMap<u64, String>,
    calls: Vec<Call>,
    killed: bool,
}

impl Tracer {
    fn start(mut command: Command, point: Option<Point>, started: impl FnOnce(Pid)) -> Self {
        let mut child = command.spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(pid, options).unwrap();
        ptrace::interrupt(pid).unwrap();
        started(pid);
        let mut input = child.stdin.take().expect("it is a pipe");
        input.write_all(b"go\n").unwrap();
        Self {
            pid,
            child,
            point,
            entered: HashMap::new(),
            files: HashMap::new(),
            calls: Vec::new(),
            killed: false,
        }
    }

    fn follow(mut self) -> Vec<Call> {
        // Threads of other tests are excluded.
        let mine = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            let status = match waitpid(None, Some(mine)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                // All threads have ended.
                Err(_) => break,
            };
            match status {
                WaitStatus::PtraceSyscall(thread) => {
                    self.syscall(thread);
                    go_on(thread, None);
                }
                WaitStatus::PtraceEvent(thread, _, _) => go_on(thread, None),
                WaitStatus::Stopped(thread, signal) => go_on(thread, Some(signal)),
                WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, _, _) => {
                    self.entered.remove(&thread);
                    if thread == self.pid {
                        break;
                    }
                }
                WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
            }
        }
        // If its end was observed, it was already waited for.
        let _ = self.child.try_wait();
        self.calls
    }

    /// Handles a thread's entry to or exit from a call.
    fn syscall(&mut self, thread: Pid) {
        // The thread may have been killed.
        let Ok(registers) = ptrace::getregs(thread) else {
            return;
        };
        match self.entered.remove(&thread) {
            None => self.enter(thread, registers),
            Some(entered) => self.leave(&entered, registers.rax),
        }
    }

    fn enter(&mut self, thread: Pid, mut registers: libc::user_regs_struct) {
        let (call, opens) = self.judge(thread, &registers);
        let writes = call.as_ref().is_some_and(|call| call.writes);
        let number = call.map(|call| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let call = number.filter(|_| !self.killed);
        self.entered.insert(thread, Entered { call, opens });
        let Some(point) = self.point.filter(|point| Some(point.call) == call) else {
            return;
        };
        match point.moment {
            Moment::Half if writes => {
                registers.rdx /= 2;
                ptrace::setregs(thread, registers).unwrap();
            }
            // This life may differ, so that the call has no length as third argument:
            // changing the flags of `open` could truncate the file.
            Moment::Before | Moment::Half => self.kill(),
            Moment::After => {}
        }
    }

    fn leave(&mut self, entered: &Entered, answer: u64) {
        let failed = answer.cast_signed() < 0;
        if let Some(path) = entered.opens.clone().filter(|_| !failed) {
            self.files.insert(answer, path);
        }
        if self
            .point
            .is_some_and(|point| Some(point.call) == entered.call)
        {
            self.kill();
        }
    }

    fn kill(&mut self) {
        self.killed = true;
        kill(self.pid, Signal::SIGKILL).unwrap();
    }

    /// Classifies a call: whether it changes a file, and the file that it opens for writing.
    fn judge(
        &mut self,
        thread: Pid,
        registers: &libc::user_regs_struct,
    ) -> (Option<Call>, Option<String>) {
        let number = registers.orig_rax.cast_signed();
        let (first, second, third) = (registers.rdi, registers.rsi, registers.rdx);
        let call = |name, path| {
            Some(Call {
                name,
                path,
                writes: false,
            })
        };
        let path = |at| text(thread, at);
        match number {
            libc::SYS_write | libc::SYS_pwrite64 => {
                let changed = self.files.get(&first).cloned();
                let call = changed.map(|path| Call {
                    name: "write",
                    path,
                    writes: third > 1,
                });
                (call, None)
            }
            libc::SYS_ftruncate => {
                let changed = self.files.get(&first).cloned();
                (changed.and_then(|path| call("ftruncate", path)), None)
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                let path = self.files.get(&first).cloned().unwrap_or_default();
                (call("fsync", path), None)
            }
            libc::SYS_openat | libc::SYS_open => {
                let (at, flags) = match number {
                    libc::SYS_open => (first, second),
                    _ => (second, third),
                };
                let flags = i32::try_from(flags & 0xffff_ffff).unwrap_or_default();
                let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
                let makes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
                let path = path(at);
                let opens = writes.then(|| path.clone());
                (makes.then(|| call("open", path)).flatten(), opens)
            }
            libc::SYS_close => {
                self.files.remove(&first);
                (None, None)
            }
            libc::SYS_fcntl if matches!(second.cast_signed() as i32, F_DUPFD | F_DUPFD_CLOEXEC) => {
                (None, self.files.get(&first).cloned())
            }
            libc::SYS_rename => (call("rename", path(second)), None),
            libc::SYS_renameat | libc::SYS_renameat2 => (call("rename", path(registers.r10)), None),
            libc::SYS_unlink | libc::SYS_rmdir => (call("unlink", path(first)), None),
            libc::SYS_unlinkat => (call("unlink", path(second)), None),
            libc::SYS_mkdir => (call("mkdir", path(first)), None),
            libc::SYS_mkdirat => (call("mkdir", path(second)), None),
            libc::SYS_link | libc::SYS_symlink => (call("link", path(second)), None),
            libc::SYS_linkat => (call("link", path(registers.r10)), None),
            libc::SYS_symlinkat => (call("link", path(third)), None),
            libc::SYS_bind => (call("bind", String::new()), None),
            _ => (None, None),
        }
    }
}

const F_DUPFD: i32 = libc::F_DUPFD;
const F_DUPFD_CLOEXEC: i32 = libc::F_DUPFD_CLOEXEC;

/// A killed thread does not continue.
fn go_on(thread: Pid, signal: Option<Signal>) {
    let _ = ptrace::syscall(thread, signal);
}

/// Reads a path from the memory of a program. A protected program is not readable without
/// privileges; then the path is empty.
fn text(thread: Pid, mut at: u64) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < libc::PATH_MAX as usize {
        let Ok(word) = ptrace::read(thread, at as ptrace::AddressType) else {
            break;
        };
        let word = word.to_ne_bytes();
        let end = word.iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&word[..end.unwrap_or(word.len())]);
        if end.is_some() {
            break;
        }
        at += word.len() as u64;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
