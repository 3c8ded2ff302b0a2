//! `bash`: runs a command under a guardian.
//!
//! Invariant: a command's task outlives the call that started it until the
//! guardian has ended; dropping the call only signals that task. Therefore
//! a cancelled call returns immediately and leaves no process behind.

mod access;
mod capture;
mod outside;
mod probe;
mod shelf;
mod supervise;
mod tail;
mod workplace;

pub(crate) use outside::is_replaceable;
pub(crate) use probe::Probe;
pub(crate) use tail::{Tail, told};
pub(crate) use workplace::Workplace;

use crate::changes::Around;
use capture::{Capture, Shelf};
use crabtalk_domain::tool::ToolOutput;
use crabtalk_guardian::{Command, Guardian, MAX_COMMAND_BYTES, Run, SandboxPolicy};
use serde::Deserialize;
pub(crate) use shelf::Shelves;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of running commands in the daemon; each takes two processes
/// and three descriptors. Further commands wait.
const MAX_RUNNING: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashArguments {
    pub(crate) command: String,
    pub(crate) timeout_ms: Option<u64>,
    /// Whether to run outside the sandbox.
    #[serde(default)]
    escalate: bool,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    reason: String,
}

impl BashArguments {
    /// Checks whether the command can be run.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.command.trim().is_empty() {
            return Err("the command is empty".into());
        }
        if self.command.contains('\0') {
            return Err("the command contains a NUL character".into());
        }
        if self.command.len() > MAX_COMMAND_BYTES {
            return Err(format!(
                "the command has {} bytes, the limit is {MAX_COMMAND_BYTES}; write a script with `write` and run that",
                self.command.len()
            ));
        }
        Ok(())
    }
}

/// A command to run, and its surroundings.
pub(crate) struct Order {
    pub(crate) command: String,
    /// Variables in addition to those of every command.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) cwd: Workplace,
    pub(crate) timeout: Duration,
    pub(crate) sandbox: Option<SandboxPolicy>,
    /// Records file changes; `None` for commands of the daemon.
    pub(crate) around: Option<Around>,
    /// Receives the end of its output.
    pub(crate) said: Option<watch::Sender<Tail>>,
    /// The folder of the conversation's output files.
    pub(crate) outputs: PathBuf,
    /// The prefix of this output file's name.
    pub(crate) prefix: String,
}

/// Runs commands and ends them.
pub(crate) struct Shell {
    guardian: Guardian,
    environment: Vec<(OsString, OsString)>,
    output_cap: usize,
    open_files: Option<u64>,
    shelves: Arc<Shelves>,
    running: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Shell {
    pub(crate) fn new(
        guardian: Guardian,
        environment: Vec<(OsString, OsString)>,
        output_cap: usize,
        open_files: Option<u64>,
        shelves: Shelves,
    ) -> Self {
        Self {
            guardian,
            environment,
            output_cap,
            open_files,
            shelves: Arc::new(shelves),
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The folders of output files.
    pub(crate) fn shelves(&self) -> &Arc<Shelves> {
        &self.shelves
    }

    /// Runs a command to its end. Dropping the future ends it.
    pub(crate) async fn run(&self, order: Order) -> ToolOutput {
        let Ok(turn) = Arc::clone(&self.running).acquire_owned().await else {
            return ToolOutput::error("the daemon is shutting down");
        };
        let cancel = self.stop.child_token();
        let _cancel_on_drop = cancel.clone().drop_guard();
        let (tell, told) = oneshot::channel();
        let confined = order.sandbox.is_some();
        let shelf = Shelf {
            shelves: Arc::clone(&self.shelves),
            folder: order.outputs,
            prefix: order.prefix,
        };
        let mut environment = self.environment.clone();
        let own = order.environment.into_iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        environment.push(("PWD".into(), order.cwd.spot().path.clone().into()));
        if !confined {
            outside::trust_path(&mut environment, &order.cwd.spot().path);
        }
        let command = Command {
            run: Run::Shell(order.command),
            environment,
            cwd: order.cwd.as_folder(),
            sandbox: order.sandbox,
            open_files: self.open_files,
        };
        let guardian = self.guardian.clone();
        let (cwd, around) = (order.cwd, order.around);
        let work = supervise::CommandRun {
            confined,
            timeout: order.timeout,
            capture: Capture::new(self.output_cap, shelf).heard_by(order.said),
            cancel,
        };
        self.tasks.spawn(async move {
            let seen = match around {
                Some(around) => around.before().await,
                None => None,
            };
            let output = work.run(&guardian, command, cwd).await;
            if let Some(seen) = seen {
                // Cancelled commands are examined as well.
                seen.after().await;
            }
            drop(turn);
            // The call may have been dropped.
            let _ = tell.send(output);
        });
        told.await
            .unwrap_or_else(|_| ToolOutput::error("the daemon is shutting down"))
    }

    /// Ends every command and waits until their guardians are gone.
    pub(crate) async fn shut_down(&self) {
        self.running.close();
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.guardian.shut_down().await;
    }
}
