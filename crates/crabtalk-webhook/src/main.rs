//! A gateway that converts signed HTTP requests to events or messages of the daemon.
//!
//! It is an example for other gateways: a separate program that speaks another protocol
//! on one side and is a client of the daemon on the other. It offers no tools, so it has
//! no port file. `settings` maps hooks to events and agents, `verify` checks signatures,
//! `gateway` removes duplicates and forwards requests.
//!
//! Invariant: a request reaches the daemon only if it is signed with the secret of its
//! hook, and only once.

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
