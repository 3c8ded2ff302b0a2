//! Operating-system tools of CrabTalk: `bash` under a guardian and, where
//! asked, in a sandbox; `read`, `edit` and `write` on judged paths.
//!
//! Absent on purpose: permission. Whether a call may happen is judged by the
//! gate, on the [`Subject`](crabtalk_domain::tool::Subject) that is resolved
//! here; this crate only touches exactly what was judged. Configuration and
//! environment come as values.

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
