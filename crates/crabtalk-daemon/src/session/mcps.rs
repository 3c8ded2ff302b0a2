//! Lists, changes and tests MCP servers and components.

use super::Session;
use crate::error::Error;
use crate::mcp;
use crabtalk_config::{Config, MASK, Mcp, McpTransport, is_name, parse_section};
use crabtalk_mcp::{Behind, Listener, Phase, ServerStatus, Servers};
use crabtalk_proto::*;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

impl Session {
    fn servers(&self) -> &Servers {
        &self.node.mcps.servers
    }

    pub(super) async fn mcps(&self, _: ListMcpsMsg) -> Result<McpList, Error> {
        self.node.mcps.known().await;
        let config = self.node.config();
        let listed = self.servers().list();
        let mcps = listed.iter().map(|status| {
            let configured = |mcp: &&Mcp| mcp.name == status.name && status.source == "config";
            info(status, config.mcp.iter().find(configured))
        });
        Ok(McpList {
            mcps: mcps.collect(),
        })
    }

    pub(super) async fn components(&self, _: ListComponentsMsg) -> Result<ComponentList, Error> {
        self.node.mcps.known().await;
        let (servers, listed) = (self.servers().clone(), self.servers().list());
        // One scan of all processes finds the owners of all ports.
        let found = tokio::task::spawn_blocking(move || {
            let ports = listed.iter().map(|status| status.port);
            let behind = Servers::behind(&ports.filter(|port| *port != 0).collect());
            let known = |mut status: ServerStatus| {
                let behind = behind.get(&status.port);
                if behind.is_some_and(|behind| behind.listener == Listener::Nobody)
                    && status.phase == Phase::Connected
                {
                    // The server's task checks the connection before its next ping.
                    servers.doubt(&status.name);
                    status.phase = Phase::Failed;
                    status.error = "its port is closed".into();
                    status.tools = 0;
                }
                component(status, behind)
            };
            listed.into_iter().map(known).collect::<Vec<_>>()
        });
        let mut components = found.await.unwrap_or_default();
        components.extend(self.node.mcps.gateways.list().into_iter().map(gateway));
        components.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(ComponentList { components })
    }

    /// Replaces the list of servers.
    pub(super) async fn put_mcps(&self, request: SetLocalMcpsMsg) -> Result<(), Error> {
        let mut tables = Vec::new();
        for mcp in request.mcps {
            check_name(&mcp.name)?;
            tables.push((mcp.name.clone(), table(mcp)));
        }
        self.node
            .edit(move |file, config| {
                for known in &config.mcp {
                    if !tables.iter().any(|(name, _)| *name == known.name) {
                        file.remove(&["mcp", &known.name]);
                    }
                }
                for (name, table) in tables {
                    file.set(&["mcp", &name], &table)?;
                }
                Ok(())
            })
            .await
    }

    pub(super) async fn put_mcp(&self, request: SetMcpMsg) -> Result<(), Error> {
        let SetMcpMsg { name, config } = request;
        check_name(&name)?;
        let table = parse_section(&config)
            .map_err(|e| Error::Invalid(format!("mcp.{name}: {}", e.with_causes())))?;
        if !table.is_object() {
            return Err(Error::Invalid(
                "the server's config is not a table: send its keys as JSON, TOML or YAML".into(),
            ));
        }
        self.node
            .edit(move |file, _| Ok(file.set(&["mcp", &name], &table)?))
            .await
    }

    pub(super) async fn remove_mcp(
        &self,
        DeleteMcpMsg { name }: DeleteMcpMsg,
    ) -> Result<(), Error> {
        self.node
            .edit(move |file, config| {
                check_has_mcp(config, &name)?;
                file.remove(&["mcp", &name]);
                Ok(())
            })
            .await
    }

    pub(super) async fn try_mcp(&self, request: TestMcpMsg) -> Result<McpTest, Error> {
        let TestMcpMsg { name, config } = request;
        check_name(&name)?;
        self.node.mcps.known().await;
        let settings = match config.is_empty() {
            true => self.servers().settings(&name).ok_or_else(|| {
                Error::NotFound(format!("unknown MCP server or component {name:?}"))
            })?,
            false => settings(&name, &config)?,
        };
        let tested = self.servers().test(&settings).await;
        let tools = tested.tools.into_iter().map(|tool| McpToolInfo {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
            read_only: tool.read_only,
            raw_name: tool.raw_name,
        });
        Ok(McpTest {
            name,
            ok: tested.error.is_empty(),
            tools: tools.collect(),
            steps: tested.steps,
            error: tested.error,
            server: tested.server,
            protocol: tested.protocol,
            took_ms: tested.took_ms,
            stderr: tested.stderr,
        })
    }
}

pub(super) fn check_has_mcp(config: &Config, name: &str) -> Result<(), Error> {
    if config.mcp.iter().any(|mcp| mcp.name == name) {
        return Ok(());
    }
    let message = format!("config.toml has no MCP server {name:?}");
    Err(Error::NotFound(message))
}

fn check_name(name: &str) -> Result<(), Error> {
    let fine = is_name(name);
    let why = crabtalk_mcp::check_server_name(name);
    match (fine, why) {
        (true, Ok(())) => Ok(()),
        (_, Err(why)) => Err(Error::Invalid(format!(
            "{name:?} is not a server name: {why}"
        ))),
        (false, Ok(())) => Err(Error::Invalid(format!("{name:?} is not a server name"))),
    }
}

/// Settings of a server that may be absent from the configuration.
fn settings(name: &str, config: &str) -> Result<crabtalk_mcp::Settings, Error> {
    let invalid =
        |e: crabtalk_config::Error| Error::Invalid(format!("mcp.{name}: {}", e.with_causes()));
    let table = parse_section(config).map_err(invalid)?;
    let text = crabtalk_config::section_text(&["mcp", name], &table).map_err(invalid)?;
    let (config, _) =
        Config::parse(&text, Path::new("config"), &crate::login::env).map_err(invalid)?;
    let mcp = config.mcp.first();
    mcp.map(mcp::settings)
        .ok_or_else(|| Error::Invalid("the config names no server".into()))
}

/// A server in a list; its credentials are masked.
fn info(status: &ServerStatus, configured: Option<&Mcp>) -> McpInfo {
    let mut info = McpInfo {
        name: status.name.clone(),
        source: status.source.to_owned(),
        auto_restart: true,
        enabled: status.phase != Phase::Off,
        source_kind: match configured {
            Some(_) => SourceKind::Local.into(),
            None => SourceKind::External.into(),
        },
        status: match status.phase {
            Phase::Connected => McpStatus::Connected.into(),
            Phase::Idle | Phase::Connecting | Phase::Off => McpStatus::Disconnected.into(),
            Phase::Hanging | Phase::Failed => McpStatus::Failed.into(),
        },
        error: status.error.clone(),
        tool_count: u32::try_from(status.tools).unwrap_or(u32::MAX),
        shadowed: status.shadowed,
        state: word(status).to_owned(),
        ..McpInfo::default()
    };
    let masked = |secrets: &BTreeMap<String, crabtalk_config::Secret>| {
        secrets
            .keys()
            .map(|name| (name.clone(), MASK.to_owned()))
            .collect()
    };
    let Some(mcp) = configured else {
        if status.port != 0 {
            info.url = format!("http://127.0.0.1:{}/mcp", status.port);
        }
        return info;
    };
    match &mcp.transport {
        McpTransport::Stdio { command, args, env } => {
            info.command = command.shown();
            info.args = args.iter().map(crabtalk_config::Written::shown).collect();
            info.env = masked(env);
        }
        McpTransport::Http { url, headers } => {
            info.url = url.shown();
            info.headers = masked(headers);
            info.auth = !headers.is_empty();
        }
    }
    info.enabled = mcp.enabled;
    info.auto_restart = mcp.auto_restart;
    info.timeout_secs = u32::try_from(mcp.timeout_secs).unwrap_or(u32::MAX);
    info.idle_secs = u32::try_from(mcp.idle_secs).unwrap_or(u32::MAX);
    info.trust = mcp.trust.as_str().to_owned();
    info
}

/// The state of a server in lists.
fn word(status: &ServerStatus) -> &'static str {
    if status.shadowed {
        "shadowed"
    } else {
        status.phase.as_str()
    }
}

fn component(status: ServerStatus, behind: Option<&Behind>) -> ComponentInfo {
    let since = Timestamp::now() - jiff::SignedDuration::try_from(status.since).unwrap_or_default();
    let pid = behind.and_then(|behind| behind.process);
    let owner = behind.map_or_else(String::new, |behind| owner(&behind.listener));
    ComponentInfo {
        source: status.source.to_owned(),
        transport: status.transport.to_owned(),
        port: status.port.into(),
        pid: pid.unwrap_or_default(),
        owner,
        state: word(&status).to_owned(),
        error: status.error,
        tool_count: u32::try_from(status.tools).unwrap_or(u32::MAX),
        shadowed: status.shadowed,
        server: status.server,
        protocol: status.protocol,
        since: crabtalk_domain::stamp(since),
        calls: u32::try_from(status.calls).unwrap_or(u32::MAX),
        connected: status.connected,
        instance: status.instance,
        name: status.name,
    }
}

fn gateway(gateway: mcp::Gateway) -> ComponentInfo {
    ComponentInfo {
        name: gateway.name,
        source: mcp::GATEWAY.into(),
        transport: "connection".into(),
        owner: gateway.owner,
        state: "connected".into(),
        server: gateway.client,
        since: crabtalk_domain::stamp(gateway.since),
        connected: 1,
        ..ComponentInfo::default()
    }
}

fn owner(listener: &Listener) -> String {
    match listener {
        Listener::Ours => "this user".into(),
        Listener::Of { uid } => format!("uid {uid}"),
        Listener::Nobody | Listener::Unknown => String::new(),
    }
}

/// Converts a server in a message to its configuration table.
fn table(mcp: McpInfo) -> Value {
    let pairs = |map: BTreeMap<String, String>| -> Value {
        map.into_iter()
            .map(|(name, value)| (name, Value::from(value)))
            .collect::<Map<_, _>>()
            .into()
    };
    let mut table = json!({"enabled": mcp.enabled, "auto_restart": mcp.auto_restart});
    if mcp.command.is_empty() {
        table["url"] = mcp.url.into();
        if !mcp.headers.is_empty() {
            table["headers"] = pairs(mcp.headers);
        }
    } else {
        table["command"] = mcp.command.into();
        if !mcp.args.is_empty() {
            table["args"] = mcp.args.into();
        }
        if !mcp.env.is_empty() {
            table["env"] = pairs(mcp.env);
        }
    }
    for (key, value) in [
        ("timeout_secs", mcp.timeout_secs),
        ("idle_secs", mcp.idle_secs),
    ] {
        if value > 0 {
            table[key] = value.into();
        }
    }
    if !mcp.trust.is_empty() {
        table["trust"] = mcp.trust.into();
    }
    table
}
