//! The messages between the guardian and the restricted
//! processes.

use crate::sandbox::{Overlays, PinnedPath, SandboxPolicy};
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Command;

/// An order to such a process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Restrict yourself and execute the program; its streams follow.
    Become {
        policy: Box<SandboxPolicy>,
        launch: Launch,
    },
    /// Leave the system's namespaces and answer [`Reply::Left`].
    Leave,
    /// The user ids are mapped; start the first process.
    Go,
    /// Act as the first process; the streams of the program follow.
    Begin(Box<Beginning>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Launch {
    /// Candidates, of which the first existing one is executed.
    pub(super) programs: Vec<String>,
    pub(super) arguments: Vec<String>,
    /// Variables in addition to those of this process.
    pub(super) environment: Vec<(String, String)>,
}

/// The order to the first process of new namespaces.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    pub(super) policy: SandboxPolicy,
    /// The folder of temporary files.
    pub(super) scratch: PinnedPath,
    /// The folders of overlay mounts.
    pub(super) overlays: Option<Overlays>,
    pub(super) launch: Launch,
    /// Whether the streams are a terminal that the process owns.
    pub(super) terminal: bool,
}

/// An answer of such a process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The process left the system's namespaces.
    Left,
    /// The first process has started; its id outside the namespaces.
    Began {
        process: i32,
    },
    /// The process listens for the proxy; the listening descriptor follows.
    Listening,
    Started,
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
    },
    Failed {
        why: String,
    },
}

impl Launch {
    /// Starts the first of the programs that exists.
    pub(super) fn each<T>(
        &self,
        mut start: impl FnMut(&mut Command) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut missing = io::Error::from(io::ErrorKind::NotFound);
        for program in &self.programs {
            match start(
                Command::new(program)
                    .args(&self.arguments)
                    .envs(self.environment.iter().map(|(name, value)| (name, value))),
            ) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => missing = e,
                other => return other,
            }
        }
        Err(missing)
    }
}
