//! The conversation log of CrabTalk: one JSONL file per conversation, read from its end
//! and written by appending.
//!
//! Invariants: a log is changed only by appending whole batches of lines, and by
//! truncating unacknowledged bytes; two senders never share a file, because line 1 names
//! the conversation; the cost of a run's operations does not grow with the archives.
//!
//! This crate does not know the meaning of runs (the runtime repairs interrupted ones), and
//! has no clock (records contain their times). File access and syncs use the caller's
//! blocking pool.

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
