//! Triggers of runs: schedules and events.
//!
//! ```text
//! cron  schedules: due times of entries and their outcomes
//! bus   subscriptions: the runs that an event starts
//! ```
//!
//! This crate reads no clock, spawns no task, starts no run and does not depend on the
//! protocol.

pub mod bus;
pub mod cron;
