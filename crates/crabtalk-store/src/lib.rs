//! The JSONL conversation log of CrabTalk: one file per conversation, read
//! from its end, written by appending.
//!
//! Invariants: a log is changed only by appending whole batches of lines, and
//! by truncating unacknowledged bytes; two senders never share a file, because
//! line 1 names the owner; the cost of operations in a run does not grow with
//! the archive.
//!
//! Out of scope: the meaning of runs (the runtime repairs runs interrupted by a
//! crash), and clocks (records carry their times). File access and syncs run in the
//! caller's blocking pool.

mod error;
pub mod fs;
pub mod lock;

mod db;
mod derived;
mod records;

mod name;

mod encode;
mod fields;
mod line;
mod tail;

mod archive;
mod load;
mod page;
mod summary;
mod working;

mod log;
mod repair;
mod state;
mod sync;

mod index;
mod store;

pub use derived::Indexes;
pub use records::Records;
pub use store::FileStore;

#[cfg(test)]
mod tests;
