//! The sandbox of commands (GATE-5): the policy of one command, and the process
//! that restricts itself to it.
//!
//! Namespaces hide everything that is not mounted, landlock limits access to
//! the mounted files, and a seccomp filter denies system calls that neither
//! covers. Invariants: a command does not run without landlock and the filter;
//! a file that was replaced after it was judged is not opened.

use std::path::PathBuf;

pub(crate) mod apart;
mod builder;
mod filter;
mod landlocked;
mod links;
mod lists;
pub(crate) mod loopback;
mod mounts;
mod plan;
mod policy;
mod repository;
pub(crate) mod root;
mod secrets;
mod walls;

pub use builder::PolicyBuilder;
pub use landlocked::version as landlock_version;
pub use policy::{PinnedPath, Right, SandboxPolicy};
pub use walls::Walls;
pub(crate) use {
    filter::filter,
    landlocked::Fence,
    plan::temporary,
    policy::{MissingPart, OpenedPath, Overlays, PLACEHOLDER},
};

/// The highest landlock version that is used, if the kernel has it.
const LATEST_LANDLOCK: u8 = 9;

/// The owner's settings for all sandboxed commands.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Whether every command can reach all public hosts through the proxy.
    pub network: bool,
    /// Paths that are readable in addition to system, toolchains and working folder.
    pub read: Vec<PathBuf>,
    /// Paths that are writable in addition to working and temporary folders.
    pub write: Vec<PathBuf>,
    /// Whether namespaces are used if the kernel allows it. Tests switch them
    /// off to exercise the fallback.
    pub namespaces: bool,
    /// The highest landlock version to use. Tests lower it to simulate older
    /// kernels.
    pub landlock: u8,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            namespaces: true,
            landlock: LATEST_LANDLOCK,
        }
    }
}

/// Explains what is missing for a sandbox.
pub(crate) fn lacks(what: &str) -> String {
    format!(
        "the command was not run, because the sandbox cannot be set up: {what}. `crabtalk doctor` shows what this machine lacks; to ask for a run outside the sandbox, use `escalate` with a reason"
    )
}
