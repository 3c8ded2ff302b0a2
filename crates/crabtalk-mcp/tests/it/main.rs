//! Servers of every kind: scripted ones over HTTP, programs, and components.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod components;
mod programs;
mod servers;
mod support;
