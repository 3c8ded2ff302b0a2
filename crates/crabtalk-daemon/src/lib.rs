//! The composition root of the daemon: reads the configuration, puts the
//! crates together, and answers the protocol.
//!
//! In reading order: [`run`] starts and stops a daemon; a node holds what is
//! configured and the runtime; a session is one connection and turns wire
//! messages into calls of the runtime.
//!
//! Absent on purpose: the run loop, formats of providers, the log's format,
//! terminal output. Nothing here parents a component.

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
