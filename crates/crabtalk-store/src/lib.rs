//! The JSONL conversation log of CrabTalk: one file per conversation, read
//! from its end, written by appending.
//!
//! Invariants: a log is changed only by appending whole batches of lines, and
//! by cutting off what was never acknowledged; two senders never share a file,
//! because line 1 says whose it is; nothing that a run waits for costs more
//! with what is archived.
//!
//! Absent on purpose: what a run means (the runtime repairs what a crash left
//! open), clocks (instants come with the records), and detached work: file
//! access runs in the caller's blocking pool, syncs on the store's own threads.

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
