//! A model server that plays a script, byte for byte, and checks every request.
//!
//! It runs in the test's process ([`Server`]) or in a separate one
//! ([`serve`], given a [`Script`] as JSON; `GET /requests` returns the recorded
//! requests and `POST /release` ends a stall). Invariants: a request that a real
//! provider would refuse is answered 400 and recorded as a problem; a client
//! that disconnects during an answer is counted.

pub mod answer;
pub mod anthropic;
pub mod bedrock;
mod check;
mod connection;
mod figures;
pub mod google;
pub mod openai;
pub mod responses;
mod script;
mod server;
mod state;

pub use answer::{FinishReason, Part};
pub use script::{Action, Format, Reply, Script};
pub use server::{Server, serve};
pub use state::{Received, ServerCounters};

#[cfg(test)]
mod tests;
