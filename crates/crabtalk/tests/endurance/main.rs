//! Long-running fault tests: the daemon is killed at every call that changes a file,
//! clients stall and misbehave, components die, hang and are replaced.
//! `cargo xtask crash`, `soak` and `chaos` run these tests for longer.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

mod chaos;
mod crash;
mod soak;
mod told;
mod world;
