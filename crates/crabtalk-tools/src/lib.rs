//! Operating-system tools of CrabTalk: `bash` under a guardian and, where
//! asked, in a sandbox; `read`, `edit` and `write` on judged paths.
//!
//! Absent on purpose: permission. Whether a call may happen is judged by the
//! gate, on the [`Subject`](crabtalk_domain::tool::Subject) that is resolved
//! here; this crate only touches exactly what was judged. Configuration and
//! environment come as values.

mod bash;
mod file_work;
mod files;
mod provider;
mod reaper;
mod sandbox;
mod specs;

mod environment;
#[cfg(target_os = "linux")]
mod mark;
mod peer;
#[cfg(target_os = "linux")]
mod processes;

pub mod guardian;

pub use bash::CommandWatch;
pub use environment::child_environment;
pub use guardian::GuardianCommand;
pub use peer::{Peers, Refusal};
pub use provider::{OpenPaths, OsTools, OsToolsConfig, outputs_of};
pub use reaper::{Children, Known, Swept, conceal};
pub use sandbox::{Namespaces, SandboxConfig, Walls};
