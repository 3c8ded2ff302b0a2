//! What the guardian and the processes that shut themselves in say to each
//! other.

use crate::sandbox::{SandboxPolicy, Spot};
use serde::{Deserialize, Serialize};

/// What such a process is told, first of all.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Restrict yourself and become the shell.
    Become {
        policy: SandboxPolicy,
        /// The shell's.
        arguments: Vec<String>,
    },
    /// Leave the system's namespaces, and say so.
    Leave { network: bool },
    /// It is settled who is who; start the first process.
    Go,
    /// Be the first process.
    Begin(Box<Beginning>),
}

/// What the first process of new namespaces is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    pub(super) policy: SandboxPolicy,
    /// The folder of temporary files.
    pub(super) scratch: Spot,
    pub(super) command: String,
    /// Whether the command is too long for an argument.
    pub(super) by_file: bool,
    /// Whether the file system is made already, and only has to be compared.
    pub(super) mounted: bool,
}

/// What such a process says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// The system's namespaces are left.
    Left,
    /// The first process has started; its number outside.
    Began { process: i32 },
    /// The shell has.
    Started,
    /// The shell has ended.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// Nothing was started.
    Failed { why: String },
}
