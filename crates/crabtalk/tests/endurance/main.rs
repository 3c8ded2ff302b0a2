//! What only time and violence show: kills at random instants and at every
//! call that changes a file, and clients that come, go, stall and misbehave.
//! `cargo xtask torture`, `crash` and `soak` run the same for longer.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

mod crash;
mod soak;
mod told;
mod torture;
mod world;
