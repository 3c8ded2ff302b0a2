//! Agents in a real tmux.
//!
//! Tests whose names begin with `check_` show a check of the supervisor's, as far
//! as the terminal shows it.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks for one event among all"
)]

mod answers;
mod lives;
mod messages;
mod real;
mod rig;
mod signs;
