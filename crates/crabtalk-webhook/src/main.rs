//! A gateway: signed HTTP requests become events or messages of the daemon.
//!
//! The pattern for every gateway. It is a program of its own that speaks another
//! protocol on one side and is a client of the daemon on the other; it offers no
//! tools, so it announces no port. `settings` says what leads where, `verify` who may
//! say it, `gateway` that nobody says it twice, and hands it on.
//!
//! Invariant: nothing reaches the daemon that was not signed with the secret of its
//! hook, and nothing that was handed on once is handed on again.

mod gateway;
mod settings;
mod verify;

use crabtalk_component::{Component, Home, Service};
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

struct Webhook(Component);

impl Service for Webhook {
    fn component(&self) -> &Component {
        &self.0
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        gateway::serve(&home, settings::Settings::read(&home)?, stop).await
    }
}

fn main() -> ExitCode {
    let component = Component::new("webhook", "Takes signed HTTP requests for agents");
    crabtalk_component::run(Webhook(component))
}
