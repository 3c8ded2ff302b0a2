//! What only time and violence show: kills at random instants, and clients
//! that come, go, stall and misbehave. `cargo xtask torture` and `cargo xtask
//! soak` run the same for longer.

mod soak;
mod torture;
mod world;
