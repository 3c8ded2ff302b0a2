//! Tells others what the daemon does: figures for Prometheus, and a trace of
//! each run for an OpenTelemetry collector (OPS-3).
//!
//! A program of its own, so that a daemon that nobody measures carries none of it.
//! `settings` says who is told, `figures` counts what happens, `page` writes the
//! counts as Prometheus reads them, `runs` makes spans of runs, `otlp` sends them,
//! `watch` hears of everything.
//!
//! Invariants: what was said in a conversation is told to nobody; what waits to be
//! sent is bounded; the daemon is never waited for by whoever asks for figures
//! longer than a few seconds.

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
    let component = Component::new("telemetry", "Tells Prometheus and OpenTelemetry of runs");
    crabtalk_component::run(Telemetry(component))
}
