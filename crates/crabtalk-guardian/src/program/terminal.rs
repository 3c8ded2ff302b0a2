//! A guardian in a terminal: it runs one interactive program in the sandbox.
//!
//! The terminal starts it with the name of a file that contains the order. It
//! replaces its environment by the program's, hands the terminal to the program,
//! and ends everything when the terminal hangs up or SIGTERM arrives.
//!
//! Invariants: the terminal belongs to the program until it ends; the program runs
//! in namespaces or not at all.

use super::descriptors::Stdio;
use super::frame::{Report, Run, Start};
use super::watch::{self, Event};
use super::{GUARDIAN_ARGUMENT, GuardianCommand, RUNNING};
use crate::sandbox::SandboxPolicy;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::SyncSender;
use tokio::signal::unix::{SignalKind, signal};

/// Second argument, after [`GUARDIAN_ARGUMENT`](super::GUARDIAN_ARGUMENT) and before the file.
pub(super) const ARGUMENT: &str = "__terminal";

/// Argument after the file once the environment was replaced.
const REPLACED: &str = "__replaced";

/// Variables that describe the terminal and are taken from the guardian's own
/// environment.
const OF_TERMINAL: [&str; 2] = ["TERM", "COLORTERM"];

/// An interactive program for a guardian in a terminal.
#[derive(Debug, Serialize, Deserialize)]
pub struct TerminalCommand {
    /// The program.
    pub run: Run,
    /// The environment, without the variables that describe the terminal.
    pub environment: Vec<(OsString, OsString)>,
    /// The sandbox, which needs namespaces.
    pub sandbox: SandboxPolicy,
}

impl TerminalCommand {
    /// Writes the order to a private file and returns the command line that runs it
    /// in a terminal. The file is read once, at the start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path, guardian: &GuardianCommand) -> io::Result<Vec<OsString>> {
        use std::os::unix::fs::OpenOptionsExt;
        // Another process may still read the previous file.
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = std::fs::OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(file);
        created?.write_all(&serde_json::to_vec(self)?)?;
        let mut words = vec![guardian.program.as_os_str().to_owned()];
        words.extend(guardian.args.iter().cloned());
        words.extend([ARGUMENT.into(), file.as_os_str().to_owned()]);
        Ok(words)
    }
}

pub(super) fn main(arguments: &[OsString]) -> ExitCode {
    let done = match arguments {
        [file] => replace_environment(file),
        [file, replaced] if replaced == REPLACED => run(file),
        _ => Err("no order file given".into()),
    };
    done.unwrap_or_else(|why| {
        let _ = writeln!(io::stderr(), "{why}");
        ExitCode::FAILURE
    })
}

fn order(file: &OsString) -> Result<TerminalCommand, String> {
    let failed =
        |e: &dyn std::fmt::Display| format!("cannot read the order {}: {e}", file.display());
    let text = std::fs::read(file).map_err(|e| failed(&e))?;
    serde_json::from_slice(&text).map_err(|e| failed(&e))
}

/// Executes this program again with the program's environment, which all children
/// inherit.
fn replace_environment(file: &OsString) -> Result<ExitCode, String> {
    let of_terminal = OF_TERMINAL
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let error = Command::new(RUNNING)
        .args([GUARDIAN_ARGUMENT, ARGUMENT])
        .arg(file)
        .arg(REPLACED)
        .env_clear()
        .envs(order(file)?.environment)
        .envs(of_terminal)
        .exec();
    Err(format!("cannot start the guardian again: {error}"))
}

fn run(file: &OsString) -> Result<ExitCode, String> {
    let order = order(file)?;
    if !order.sandbox.namespaces {
        return Err(crate::sandbox::lacks("a terminal needs namespaces"));
    }
    let start = Start {
        run: order.run,
        sandbox: Some(order.sandbox),
        open_files: None,
    };
    let streams = Stdio::own().map_err(|e| format!("cannot share the terminal: {e}"))?;
    match watch::attend(start, streams, true, watch_signals)? {
        Report::Ended { code, signal, .. } => {
            let code = code.or(signal.map(|signal| 128 + signal)).unwrap_or(1);
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
        }
        Report::NotStarted { why } => Err(why),
    }
}

/// Watches for a terminal hangup and for SIGTERM. The thread ends with the
/// process.
fn watch_signals(tell: SyncSender<Event>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut hangup, mut end) = {
        let _entered = runtime.enter();
        (
            signal(SignalKind::hangup())?,
            signal(SignalKind::terminate())?,
        )
    };
    std::thread::Builder::new().spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => {}
                _ = end.recv() => {}
            }
        });
        // Fails only if everything has already ended.
        let _ = tell.send(Event::Closed);
    })?;
    Ok(())
}
