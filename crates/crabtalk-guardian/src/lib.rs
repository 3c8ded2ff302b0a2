//! Starts processes that end with their owner. [`Guardian::spawn`] starts one under a
//! guardian, a small process that owns it and its descendants, with three pipes and
//! optionally in a sandbox.
//!
//! A guarded process and all its descendants end
//!
//! - when its [`Child`] is dropped or told to end,
//! - when this process ends, even by SIGKILL: the guardian detects it,
//! - when the guardian is killed: its processes are re-parented to this process, which
//!   [`Children`] makes the reaper, and are recognised by a mark.
//!
//! Guardian and daemon are one program: the binary calls
//! [`enter`] before anything else.
//!
//! This crate decides no permissions and does not know the purpose of a process.
//! Configuration and environment are passed as values.

#[cfg(not(target_os = "linux"))]
compile_error!("CrabTalk needs Linux: its sandbox and guardian have no equivalent elsewhere");

mod child;
mod environment;
mod mark;
mod peer;
mod processes;
mod program;
mod reaper;
mod sandbox;

pub mod sockets;

pub use child::{Child, Command, Error, ExitStatus, Guardian, Streams};
pub use environment::child_environment;
pub use peer::{Peers, Refusal};
pub use program::{
    GUARDIAN_ARGUMENT, GuardianCommand, MAX_COMMAND_BYTES, Run, TerminalCommand, enter,
};
pub use reaper::{Children, Registration, Swept, conceal};
pub use sandbox::{
    PinnedPath, PolicyBuilder, Right, SandboxConfig, SandboxPolicy, Walls, landlock_version,
};
