//! The processes that restrict themselves.
//!
//! Without namespaces, one process restricts itself and executes the program. With
//! namespaces there are two: one leaves the system's namespaces and starts the first process of the
//! new ones. That process builds the file system, starts the program from a thread that has
//! restricted itself, and reaps orphans. When it ends, the kernel ends all
//! other processes of the namespace.
//!
//! They are separate processes because restricting between fork and exec
//! needs unsafe code.

use super::descriptors::{self, Stdio};
use super::frame;
use super::replies::{Beginning, Launch, Reply, Task};
use crate::sandbox::{Fence, SandboxPolicy, apart, filter, lacks, loopback, root};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};
use std::convert::Infallible;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Time for remaining processes to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(200);

/// Variables for the proxy's address.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
];

/// The first process of a namespace: a signal to its group reaches all
/// others.
/// others there.
const ALL: Pid = Pid::INIT;

pub(super) fn main() -> ExitCode {
    // Exec closes the copy, which tells the guardian that the program started.
    let Ok(control) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut control = UnixStream::from(control);
    let done = match frame::read(&mut control).map_err(failed) {
        Ok(Task::Become { policy, launch }) => {
            become_it(&control, &policy, &launch).map(|never| match never {})
        }
        Ok(Task::Leave) => leave(&mut control),
        Ok(Task::Begin(beginning)) => begin(&mut control, *beginning),
        Ok(Task::Go) => Ok(()),
        Err(why) => Err(why),
    };
    let Err(why) = done else {
        return ExitCode::SUCCESS;
    };
    let _ = frame::write(&mut control, &Reply::Failed { why });
    ExitCode::FAILURE
}

fn failed(e: io::Error) -> String {
    format!("cannot start the program in the sandbox: {e}")
}

/// Runs the program without namespaces. Returns only on failure.
fn become_it(
    control: &UnixStream,
    policy: &SandboxPolicy,
    launch: &Launch,
) -> Result<Infallible, String> {
    let streams = Stdio::receive(control).map_err(failed)?;
    let mut fence = Fence::new(policy.landlock)?;
    fence.open_policy(policy)?;
    fence.open_shared()?;
    fence.close()?;
    apart::give_up().map_err(failed)?;
    filter(false)?;
    let become_it = |command: &mut Command| Err(streams.try_clone()?.give(command).exec());
    launch.each(become_it).map_err(failed)
}

/// Leaves the system's namespaces and starts the first process of new ones.
fn leave(control: &mut UnixStream) -> Result<(), String> {
    let lacks = |e: io::Error| lacks(&format!("namespaces are not available: {e}"));
    apart::leave().map_err(lacks)?;
    frame::write(control, &Reply::Left).map_err(failed)?;
    // The guardian, outside, maps the user ids first.
    let Task::Go = frame::read(control).map_err(failed)? else {
        return Err("unexpected message from the guardian".into());
    };
    apart::pass_on().map_err(lacks)?;
    let theirs = control.try_clone().map_err(failed)?;
    let first = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .map_err(failed)?;
    let process = first.id().cast_signed();
    frame::write(control, &Reply::Began { process }).map_err(failed)
}

/// Runs the first process of new namespaces until all processes in them have ended.
fn begin(control: &mut UnixStream, beginning: Beginning) -> Result<(), String> {
    let Beginning {
        policy,
        scratch,
        overlays,
        mut launch,
        terminal,
    } = beginning;
    let streams = Stdio::receive(&*control).map_err(failed)?;
    let mut fence = Fence::new(policy.landlock)?;
    let build = root::Build {
        policy: &policy,
        scratch: &scratch,
        overlays: overlays.as_ref(),
    };
    root::build(&build, &mut fence)?;
    let loopback = loopback::bring_up();
    if !policy.hosts.is_empty() {
        launch.environment = loopback.and_then(|()| listen(control)).map_err(failed)?;
    }
    let failed_errno = |e: rustix::io::Errno| failed(e.into());
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed_errno)?;
    apart::give_up().map_err(failed)?;
    let process = start_shut_in(fence, launch, streams, terminal)?;
    end_with(control)?;
    frame::write(control, &Reply::Started).map_err(failed)?;
    reap(control, process, terminal);
    Ok(())
}

/// Listens inside the namespace for the proxy, which accepts and connects outside.
/// Returns the variables that direct programs to it.
fn listen(control: &mut UnixStream) -> io::Result<Vec<(String, String)>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    frame::write(control, &Reply::Listening)?;
    descriptors::send(control, &[listener.as_fd()])?;
    let mut environment: Vec<(String, String)> = PROXY_VARIABLES
        .iter()
        .map(|name| ((*name).to_owned(), address.clone()))
        .collect();
    for (name, value) in [
        ("NO_PROXY", ""),
        ("no_proxy", ""),
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        environment.push((name.to_owned(), value.to_owned()));
    }
    Ok(environment)
}

/// Starts the program from a thread that restricts itself first, since children inherit
/// a thread's restrictions.
fn start_shut_in(
    fence: Fence,
    launch: Launch,
    streams: Stdio,
    terminal: bool,
) -> Result<i32, String> {
    let thread = std::thread::spawn(move || {
        fence.close()?;
        filter(true)?;
        let started = launch.each(|command| {
            let command = streams.try_clone()?.give(command);
            if terminal {
                // The process group is the terminal's foreground.
                return command.spawn();
            }
            command.process_group(0).spawn()
        });
        let process = started.map(|child| child.id().cast_signed());
        process.map_err(failed)
    });
    thread
        .join()
        .unwrap_or_else(|_| Err("the sandbox thread panicked".into()))
}

/// Ends this process, and with it the namespace, when the guardian ends.
fn end_with(control: &UnixStream) -> Result<(), String> {
    let mut control = control.try_clone().map_err(failed)?;
    std::thread::spawn(move || {
        let mut byte = [0];
        while !matches!(control.read(&mut byte), Ok(0)) {}
        std::process::exit(1);
    });
    Ok(())
}

/// Waits for all children of the first process. When the program has ended,
/// the others get SIGTERM; the kernel kills them when this process ends.
fn reap(control: &mut UnixStream, process: i32, terminal: bool) {
    // No shell would continue a program stopped by Ctrl-Z.
    let options = if terminal {
        WaitOptions::UNTRACED
    } else {
        WaitOptions::empty()
    };
    loop {
        match rustix::process::wait(options) {
            Ok(Some((pid, status))) if status.stopped() => {
                let _ = rustix::process::kill_process(pid, Signal::CONT);
            }
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == process => {
                // The guardian may be gone.
                let _ = frame::write(control, &ended(status));
                let _ = rustix::process::kill_process_group(ALL, Signal::TERM);
                // A stopped process would not handle the signal.
                let _ = rustix::process::kill_process_group(ALL, Signal::CONT);
                std::thread::spawn(|| {
                    std::thread::sleep(GRACE);
                    std::process::exit(0);
                });
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn ended(status: WaitStatus) -> Reply {
    Reply::Ended {
        code: status.exit_status(),
        signal: status.terminating_signal(),
    }
}
