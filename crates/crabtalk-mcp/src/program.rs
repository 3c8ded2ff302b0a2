//! A server's program under a guardian, connected by its standard streams.
//!
//! Invariant: the program and its descendants end with this process and with the
//! guardian, even if those are killed (RUN-10).

use crate::settings::Transport;
use crabtalk_guardian::{Child, Command, Guardian, Run, Streams};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio_util::task::TaskTracker;

/// Maximum bytes stored of the end of standard error, to be shown with an error.
const MAX_COMPLAINTS: usize = 4 << 10;

/// Resources for starting programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Starts the programs.
    pub guardian: Guardian,
    /// The environment of all programs.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder of all programs.
    pub cwd: PathBuf,
    /// The limit of open files of all programs.
    pub open_files: Option<u64>,
}

/// The last output of a program other than messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<Vec<u8>>>);

impl Complaints {
    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(MAX_COMPLAINTS);
        kept.drain(..excess);
    }

    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

/// A running program.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) reads: Receiver,
    pub(crate) writes: Sender,
    pub(crate) complaints: Complaints,
}

/// Starts a server's program.
pub(crate) fn start(
    programs: &Programs,
    name: &str,
    transport: &Transport,
    tasks: &TaskTracker,
) -> Result<Started, String> {
    let Transport::Program { command, args, env } = transport else {
        return Err("it is not a program".into());
    };
    let mut environment = programs.environment.clone();
    environment.retain(|(known, _)| !known.to_str().is_some_and(|known| env.contains_key(known)));
    environment.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
    let command = Command {
        run: Run::Program {
            program: command.clone(),
            arguments: args.clone(),
        },
        environment,
        cwd: programs.cwd.clone(),
        sandbox: None,
        open_files: programs.open_files,
    };
    let spawned = programs.guardian.spawn(command, Streams::Three);
    let mut child = spawned.map_err(|e| e.to_string())?;
    let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
    let (Some(reads), Some(writes), Some(mut stderr)) = pipes else {
        return Err("it has no pipes".into());
    };
    let complaints = Complaints::default();
    let (kept, name) = (complaints.clone(), name.to_owned());
    tasks.spawn(async move {
        let mut buffer = vec![0; 1024];
        // Ends when the last process with the pipe has ended.
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            let said = &buffer[..length];
            tracing::debug!(server = %name, said = %String::from_utf8_lossy(said).trim_end(), "standard error of an MCP server");
            kept.add(said);
        }
    });
    Ok(Started {
        child,
        reads,
        writes,
        complaints,
    })
}
