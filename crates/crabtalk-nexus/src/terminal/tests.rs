//! Agents in a real tmux.
//!
//! Tests whose names begin with `check_` cover a check of the supervisor, as far
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
