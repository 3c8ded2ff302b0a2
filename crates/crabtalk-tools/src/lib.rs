//! Operating-system tools of CrabTalk: `bash` under a guardian, in a sandbox unless
//! the call may leave it; `read`, `edit`, `write`, `grep` and `glob` on judged paths.
//!
//! Invariant: this crate decides no permissions. The gate judges the
//! [`Subject`](crabtalk_domain::tool::Subject) that this crate resolves, and the crate
//! touches exactly that subject. Configuration and environment are passed as
//! values.

mod bash;
mod changes;
mod file_work;
mod files;
mod outputs;
mod provider;
mod specs;

pub use changes::{FileChange, Kind as ChangeKind, RunChanges, UndoRefused, Undone};
pub use file_work::FileWork;
pub use files::{image, unified_diff};
pub use outputs::outputs_of;
pub use provider::{OpenPaths, OsTools, OsToolsConfig};
