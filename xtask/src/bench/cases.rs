//! The measures, one function each, with their bounds.

mod conversations;
mod crowds;
mod relay;
mod sandbox;
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
    ("cpu", relay::cpu),
    ("throughput", relay::throughput),
    ("crowd", crowds::crowd),
    ("history", conversations::history),
    ("sandbox", sandbox::start),
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
