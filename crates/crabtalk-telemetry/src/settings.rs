//! `config/telemetry.toml`: the receivers.

use anyhow::{Context, ensure};
use crabtalk_component::Home;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) prometheus: Option<Prometheus>,
    pub(crate) otlp: Option<Otlp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prometheus {
    /// The address to listen on. Clients are not authenticated; beyond loopback, a
    /// proxy must do that.
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Otlp {
    /// The address of the collector, such as `http://127.0.0.1:4318`; traces are sent to its
    /// `/v1/traces`.
    pub(crate) endpoint: String,
    /// Headers of every request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn read(home: &Home) -> anyhow::Result<Self> {
        let path = home.path().join("config/telemetry.toml");
        let failed = || format!("cannot use {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(failed)?;
        Self::parse(&text).with_context(failed)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let settings: Self = toml::from_str(text)?;
        ensure!(
            settings.prometheus.is_some() || settings.otlp.is_some(),
            "it has no receiver: add [prometheus] with `listen`, or [otlp] with `endpoint`"
        );
        if let Some(otlp) = &settings.otlp {
            let rest = otlp.endpoint.strip_prefix("http://");
            ensure!(
                rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')),
                "otlp.endpoint {:?} is not an http:// address; run a collector on this machine to forward spans over TLS",
                otlp.endpoint
            );
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_a_receiver_are_refused() {
        let error = |text| format!("{:#}", Settings::parse(text).unwrap_err());
        assert!(error("").contains("[prometheus]"));
        assert!(error("[otlp]\nendpoint = \"https://x\"").contains("http://"));
        assert!(error("[prometheus]\nlisten = 5").contains("listen"));
        assert!(error("[grafana]").contains("grafana"));
        assert!(Settings::parse("[prometheus]\nlisten = \"127.0.0.1:9464\"").is_ok());
    }
}
