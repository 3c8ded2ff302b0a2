//! Decides what an agent may use, and what it may do without asking (GATE-1, GATE-2,
//! GATE-4, GATE-6).
//!
//! Invariants:
//! - A verdict is a pure function of values: judging a call twice gives the same result.
//! - The sandbox is the security boundary for commands. Rules decide which calls
//!   ask; they never predict what a command does.
//! - Commands allowed by rules, approvals or skills run inside the sandbox. Only a
//!   person, the exact text of an `outside` rule, or mode `full` lets a command out.
//!
//! This crate neither asks people nor opens files: a [`Disk`] resolves links.

pub mod approvals;
mod autorun;
mod command;
pub mod disk;
pub mod path;
mod patterns;
pub mod rights;
pub mod rules;
pub mod scope;
pub mod words;

#[cfg(test)]
mod tests;

pub use approvals::Approval;
pub use disk::Disk;
pub use rights::ToolRights;
pub use rules::{Question, Standing, Verdict, judge, mode_of, standing};
pub use scope::Violation;
