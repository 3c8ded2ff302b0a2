//! `config/webhook.toml`: the address to listen on, and the hooks.

use crate::verify::{Scheme, from_base64};
use anyhow::{Context, ensure};
use crabtalk_component::Home;
use ring::hmac;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Minimum bytes of a secret; a shorter one could be guessed from one signed request.
const MIN_SECRET_BYTES: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The address to listen on. A proxy in front of it adds TLS.
    pub(crate) listen: SocketAddr,
    #[serde(rename = "hook")]
    pub(crate) hooks: BTreeMap<String, Hook>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hook {
    secret_file: PathBuf,
    #[serde(default)]
    pub(crate) scheme: Scheme,
    /// The source of the event that is published for a request.
    pub(crate) event: Option<String>,
    /// Alternatively, the agent that gets the request as a message, and the sender.
    pub(crate) agent: Option<String>,
    pub(crate) sender: Option<String>,
    /// Headers that are forwarded with the body, such as the event type.
    #[serde(default = "headers")]
    pub(crate) headers: Vec<String>,
    /// Maximum requests per minute; each may start a run, which costs money.
    #[serde(default = "per_minute")]
    pub(crate) per_minute: u32,
}

/// The headers of common senders.
fn headers() -> Vec<String> {
    [
        "Webhook-Id",
        "X-GitHub-Event",
        "X-GitHub-Delivery",
        "X-Gitea-Event",
        "X-Gitlab-Event",
        "X-Event-Key",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn per_minute() -> u32 {
    30
}

impl Settings {
    pub(crate) fn read(home: &Home) -> anyhow::Result<Self> {
        let path = home.path().join("config/webhook.toml");
        let failed = || format!("cannot use {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(failed)?;
        toml::from_str(&text).with_context(failed)
    }
}

impl Hook {
    /// The signature key. Fails if the hook is invalid.
    pub(crate) fn key(&self) -> anyhow::Result<hmac::Key> {
        ensure!(
            self.event.is_some() != self.agent.is_some(),
            "it needs either `event` or `agent`"
        );
        let path = self.secret_file.display();
        let text = std::fs::read_to_string(&self.secret_file);
        let text = text.with_context(|| format!("cannot read {path}"))?;
        let secret = match text.trim().strip_prefix("whsec_") {
            Some(encoded) => from_base64(encoded).unwrap_or_default(),
            None => text.trim().as_bytes().to_vec(),
        };
        let long = secret.len() >= MIN_SECRET_BYTES;
        ensure!(
            long,
            "the secret in {path} is shorter than {MIN_SECRET_BYTES} bytes"
        );
        Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }
}
