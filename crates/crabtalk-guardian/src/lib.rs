//! Processes that end with their owner: [`Guardian::spawn`] starts one under a
//! guardian, a small process that owns it and everything that descends from
//! it, with its own three pipes and, on request, in a sandbox.
//!
//! A guarded process and all its descendants end
//!
//! - when its [`Child`] is dropped or told to end,
//! - when this process ends, by SIGKILL too: the guardian sees it,
//! - when the guardian is killed: what it guarded falls to this process, which
//!   [`Children`] makes the reaper, and bears a mark by which it is known.
//!
//! Guardian and daemon are one program: the binary calls
//! [`enter`] before anything else.
//!
//! Absent on purpose: permission, and what a process is for. Configuration and
//! environment come as values.

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
pub use reaper::{Children, Known, Swept, conceal};
pub use sandbox::{
    PolicyBuilder, Right, SandboxConfig, SandboxPolicy, Spot, Walls, landlock_version,
};
