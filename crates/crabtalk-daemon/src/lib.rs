//! The composition root of the daemon: reads the configuration, connects the crates, and
//! implements the protocol.
//!
//! In reading order: [`run`] starts and stops a daemon; a node owns the runtime and its
//! configured parts; a session serves one connection and turns wire messages into calls
//! of the runtime.
//!
//! This crate contains no run loop, provider formats, log format or terminal output, and
//! starts no component.

mod agents;
mod approvals;
mod audit;
mod backup;
mod bus;
mod compose;
mod context;
mod cron;
mod delegates;
mod disk;
mod edit;
mod error;
mod import;
mod ledger;
mod leftovers;
mod logging;
mod login;
mod mcp;
mod memory;
mod models;
mod node;
mod notify;
mod remote;
mod restore;
mod services;
mod session;
mod settings;
mod skills;
mod start;
mod starter;
mod surroundings;
mod sweep;
mod tables;

pub use backup::backup;
pub use restore::restore;
pub use start::{Options, run};
