//! The judging half of the gate: what an agent may reach, and what it may do
//! without asking (GATE-1, GATE-2, GATE-4, GATE-6).
//!
//! Invariants: everything here is a pure function of values, so that one call
//! judged twice is judged alike; scope is judged before permission, and both
//! before dispatch, by whoever routes tool calls.
//!
//! Absent on purpose: asking people, opening what was judged. What has to be
//! known of the disk is asked of a [`Disk`].

pub mod approvals;
pub mod bash;
mod command;
pub mod disk;
mod options;
pub mod path;
mod pattern;
mod places;
pub(crate) mod plain;
pub(crate) mod prefix;
mod programs;
mod repository;
pub mod rights;
pub mod rules;
pub mod scope;

#[cfg(test)]
mod tests;

pub use approvals::Approval;
pub use disk::{Content, Disk};
pub use rights::ToolRights;
pub use rules::{Question, Standing, Verdict, detail, judge, standing};
pub use scope::Violation;
