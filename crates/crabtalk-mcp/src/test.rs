//! Tests the connection to a server step by step (`mcps test`).
//!
//! Invariant: everything started for the test has ended when it returns.

use crate::link::Connection;
use crate::list::Tools;
use crate::listed;
use crate::said;
use crate::servers::Servers;
use crate::settings::{Settings, Transport};
use rmcp::model::ProtocolVersion;
use std::time::Instant;
use tokio::time::timeout;

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub struct Tested {
    /// The steps, in order.
    pub steps: Vec<String>,
    /// The first error; empty if there is none.
    pub error: String,
    /// Name and version that the server declares.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// Its tools.
    pub tools: Vec<TestedTool>,
    /// The duration in milliseconds.
    pub took_ms: u64,
    /// The end of the program's standard error.
    pub stderr: String,
}

/// A tool of a tested server.
#[derive(Debug, Clone)]
pub struct TestedTool {
    /// The name for agents.
    pub name: String,
    /// The server's own name.
    pub raw_name: String,
    /// Its description.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: String,
    /// Whether it declares to be read-only.
    pub read_only: bool,
}

impl Servers {
    /// The settings of a configured or discovered server.
    pub fn settings(&self, name: &str) -> Option<Settings> {
        self.get(name).map(|server| server.settings.clone())
    }

    /// Tests a server on a new connection.
    pub async fn test(&self, settings: &Settings) -> Tested {
        let begun = Instant::now();
        let mut tested = Tested::default();
        if let Err(why) = self.try_it(settings, &mut tested).await {
            tested.error = said::sentence(why);
        }
        tested.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tested
    }

    async fn try_it(&self, settings: &Settings, tested: &mut Tested) -> Result<(), String> {
        if !settings.unusable.is_empty() {
            return Err(settings.unusable.clone());
        }
        let pace = &self.0.pace;
        let (what, within) = match &settings.transport {
            Transport::Program { command, .. } => (format!("start {command}"), pace.start),
            Transport::Url { .. } => ("connect to its address".into(), pace.connect),
            Transport::Port(port) => (format!("connect to 127.0.0.1:{}", port.port), pace.connect),
        };
        tested.steps.push(what);
        let opened = Connection::open(&self.0.means, settings, within).await;
        let mut connection = opened.map_err(|not| {
            tested.stderr = not.stderr;
            not.why
        })?;
        tested.server.clone_from(&connection.link.server);
        tested.protocol.clone_from(&connection.link.protocol);
        tested.steps.push(format!(
            "handshake: {} speaks version {}{}",
            or_nobody(&tested.server),
            tested.protocol,
            match is_known(&tested.protocol) {
                true => "",
                false => ", which is not known here",
            }
        ));
        let listed = timeout(pace.list, listed::fetch(&connection.link)).await;
        let late = || format!("no list of tools within {} s", pace.list.as_secs());
        let mut listed = listed.map_err(|_| late()).flatten();
        if listed.is_err()
            && let Some(why) = connection.ended_soon().await
        {
            listed = Err(why);
        }
        tested.stderr = connection.words.complaints.text();
        // Some servers need a login only after the handshake.
        if let Some(tokens) = &connection.link.tokens
            && listed.is_err()
            && tokens.is_refused()
        {
            listed = Err(tokens.wanted());
        }
        connection.close().await;
        let tools = Tools::new(settings, listed?);
        tested
            .steps
            .push(format!("list of tools: {}", tools.known.len()));
        tested
            .steps
            .extend(tools.left_out.iter().map(|out| format!("left out: {out}")));
        tested.tools = tools
            .known
            .into_iter()
            .map(|known| TestedTool {
                name: known.spec.name.clone(),
                description: known.spec.description.clone(),
                parameters: known.spec.parameters.as_str().to_owned(),
                raw_name: known.raw,
                read_only: known.read_only,
            })
            .collect();
        Ok(())
    }
}

fn is_known(version: &str) -> bool {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    known.any(|known| known.as_str() == version)
}

fn or_nobody(server: &str) -> &str {
    if server.is_empty() {
        "a server without a name"
    } else {
        server
    }
}
