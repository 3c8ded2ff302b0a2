//! Exports metrics to Prometheus and a trace of each run to an OpenTelemetry collector
//! (OPS-3).
//!
//! `settings` has the receivers, `watch` follows the daemon's events, `figures` counts
//! them, `page` formats the counters for Prometheus, `runs` creates spans of runs, `otlp`
//! sends them.
//!
//! Invariants: no text of a conversation is exported; the queue of spans is bounded; a
//! scrape waits for the daemon at most a few seconds.

mod figures;
mod otlp;
mod page;
mod runs;
mod settings;
mod watch;

use crabtalk_component::{Component, Home, Service};
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

struct Telemetry(Component);

impl Service for Telemetry {
    fn component(&self) -> &Component {
        &self.0
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        watch::serve(&home, settings::Settings::read(&home)?, stop).await
    }
}

fn main() -> ExitCode {
    let component = Component::new("telemetry", "Exports metrics and traces of runs");
    crabtalk_component::run(Telemetry(component))
}
