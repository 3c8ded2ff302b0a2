//! What is measured, one function each, with its bound.

mod conversations;
mod crowds;
mod nexus;
mod relay;
mod remote;
mod screen;
mod starting;

use super::server::{ModelServer, Plan};
use super::stats::Row;

/// A measure's name and what takes it.
pub(crate) type Case = (&'static str, fn(&ModelServer) -> anyhow::Result<Vec<Row>>);

/// In the table's order.
pub(crate) const CASES: &[Case] = &[
    ("start", starting::start),
    ("memory", starting::memory),
    ("first-chunk", relay::first_chunk),
    ("instructions", relay::instructions),
    ("cpu", relay::cpu),
    ("throughput", relay::throughput),
    ("users", crowds::users),
    ("crowd", crowds::crowd),
    ("remote", remote::added),
    ("remote-crowd", remote::crowd),
    ("archive", conversations::archive),
    ("history", conversations::history),
    ("screen", screen::markdown),
    ("nexus", nexus::idle_and_bell),
];

/// One short answer at once.
const SHORT: Plan = Plan {
    latency_us: 0,
    chunks: 4,
    gap_us: 0,
    group: 0,
};

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
