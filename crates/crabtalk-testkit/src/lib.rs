//! Test doubles of CrabTalk, one per port.
//!
//! Each is a small working implementation that is stricter than the one it
//! replaces. Invariant: no released binary needs this crate.

pub mod buffer;
pub mod changes;
pub mod clock;
pub mod contract;
pub mod ends;
pub mod fake_agent;
pub mod fuzz;
pub mod model;
pub mod ports;
pub mod scripted;
pub mod store;
pub mod terminal;
pub mod tools;

pub use buffer::Buffer;
pub use changes::MemoryChanges;
pub use clock::ManualClock;
pub use ends::HeardEnds;
pub use fuzz::fuzz;
pub use model::{Reply, ScriptedModel};
pub use store::MemoryStore;
pub use terminal::Terminal;
