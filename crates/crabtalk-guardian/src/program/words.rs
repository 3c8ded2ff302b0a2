//! The messages between the guardian and the processes that restrict
//! themselves.

use crate::sandbox::{Overlays, SandboxPolicy, Spot};
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Command;

/// The first message to such a process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Restrict yourself and become the process; its streams follow.
    Become {
        policy: Box<SandboxPolicy>,
        launch: Launch,
    },
    /// Leave the system's namespaces, and say so.
    Leave,
    /// It is settled who is who; start the first process.
    Go,
    /// Be the first process; the streams of the one to start follow.
    Begin(Box<Beginning>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Launch {
    /// The first of these that is there.
    pub(super) programs: Vec<String>,
    pub(super) arguments: Vec<String>,
    /// Variables beside those of this process.
    pub(super) environment: Vec<(String, String)>,
}

/// The order to the first process of new namespaces.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    pub(super) policy: SandboxPolicy,
    /// The folder of temporary files.
    pub(super) scratch: Spot,
    /// The folders of overlay mounts.
    pub(super) overlays: Option<Overlays>,
    pub(super) launch: Launch,
    /// Whether the process owns the terminal that its streams are.
    pub(super) terminal: bool,
}

/// An answer of such a process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// The system's namespaces are left.
    Left,
    /// The first process has started; its number outside.
    Began {
        process: i32,
    },
    /// It listens for the proxy; the listening descriptor follows.
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
