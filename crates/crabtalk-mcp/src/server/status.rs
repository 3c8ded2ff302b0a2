//! The state of a server for lists.

use std::time::Duration;

/// The phase of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The program does not run; a call starts it.
    Idle,
    /// The server is being connected.
    Connecting,
    /// The server is connected and answers.
    Connected,
    /// The server is connected but does not answer pings.
    Hanging,
    /// The server cannot be connected, or its connection ended.
    Failed,
    /// The server is disabled.
    Off,
}

impl Phase {
    /// The name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Hanging => "hanging",
            Self::Failed => "failed",
            Self::Off => "off",
        }
    }
}

/// The state of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: &'static str,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The loopback port of a component.
    pub port: u16,
    /// The instance id of the component.
    pub instance: String,
    /// Its phase.
    pub phase: Phase,
    /// The last error; empty if there is none.
    pub error: String,
    /// Whether the error is a missing login.
    pub wants_login: bool,
    /// Number of tools on offer.
    pub tools: usize,
    /// Whether a configured server of the same name takes precedence.
    pub shadowed: bool,
    /// Name and version that the server declares.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// The time since the phase began.
    pub since: Duration,
    /// Calls in flight.
    pub calls: usize,
    /// Number of connections so far.
    pub connected: u32,
}
