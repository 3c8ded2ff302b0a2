//! What only time and violence show: kills at random instants and at every
//! call that changes a file, clients that come, go, stall and misbehave, and
//! components that die, hang and are replaced.
//! `cargo xtask torture`, `crash` and `soak` run the same for longer.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

mod chaos;
mod crash;
mod soak;
mod told;
mod torture;
mod world;
