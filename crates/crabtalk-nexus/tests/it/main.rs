//! NEXUS as a whole, with agents that are doubles.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod board;
mod cli;
mod crash;
mod double;
mod rig;
mod sandbox;
mod tmux;
