//! The record of who did what: append-only, hash-chained (REMOTE-2).
//!
//! ```text
//! entry   one line: what was done, by whom, and the hash of the line before
//! files   which files there are, how one ends, and the anchor
//! log     the file that is written, its anchor, and how it is closed when full
//! check   whether everything fits, and the latest lines
//! ```
//!
//! Invariants: an entry is on the disk when it counts; a line is never changed, and
//! no file is ever removed; a line that does not fit is named, whoever wrote it.
//!
//! Absent on purpose: clocks, what is worth an entry, anything asynchronous.

mod check;
mod entry;
mod files;
mod log;

pub use check::{Check, Page, check, latest};
pub use entry::{AuditEntry, Line};
pub use files::Error;
pub use log::{Log, begin_anew};
