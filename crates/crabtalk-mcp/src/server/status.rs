//! What lists show of a server.

use std::time::Duration;

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A program that does not run; a call starts it.
    Idle,
    /// It is being connected.
    Connecting,
    /// It answers.
    Connected,
    /// It is connected, and does not answer.
    Hanging,
    /// It cannot be reached, or has died.
    Failed,
    /// It is switched off.
    Off,
}

impl Phase {
    /// The word that lists have.
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

/// What is known of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Where it is known from.
    pub source: &'static str,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Its port on the loopback, for a component.
    pub port: u16,
    /// Which start of the component this is.
    pub instance: String,
    /// Where it stands.
    pub phase: Phase,
    /// Why it failed last; empty if it never did.
    pub error: String,
    /// Whether that is because a person has to log in to it.
    pub wants_login: bool,
    /// Tools on offer.
    pub tools: usize,
    /// Whether another one stands before it.
    pub shadowed: bool,
    /// Name and version by its own account.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// How long it has been in this phase.
    pub since: Duration,
    /// Calls in flight.
    pub calls: usize,
    /// How often it was connected.
    pub connected: u32,
}
