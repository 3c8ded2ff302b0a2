//! The address of a daemon, a connection to it, and the handshake (WIRE-5).

use crate::error::Error;
use crate::remote::{self, Remote};
use crabtalk_proto::{
    Client as _, ClientError, ClientMessage, HelloMsg, PROTOCOL_VERSION, ServerMessage, WelcomeMsg,
};
use crabtalk_transport::{Connection as Link, Error as SocketError};
use futures_core::Stream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// The socket's name in a home.
const SOCKET: &str = "daemon.sock";

/// Timeout of the Welcome; a daemon that exceeds it is treated as hung.
const WELCOME_WITHIN: Duration = Duration::from_secs(30);

/// The address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// Another machine, over TCP.
    Remote(Box<Remote>),
}

impl From<Remote> for Endpoint {
    fn from(remote: Remote) -> Self {
        Self::Remote(Box::new(remote))
    }
}

impl Endpoint {
    /// The daemon of a home folder.
    pub fn of_home(home: impl AsRef<Path>) -> Self {
        Self::Unix(home.as_ref().join(SOCKET))
    }

    /// Opens a connection without a handshake. Fails with
    /// [`Error::NoDaemon`] if no daemon answers.
    pub(crate) async fn open(&self) -> Result<Link, Error> {
        let remote = match self {
            Self::Unix(socket) => {
                let connected = crabtalk_transport::connect(socket).await;
                return connected.map_err(|error| Error::NoDaemon(error.to_string()));
            }
            Self::Remote(remote) => remote,
        };
        let address = remote.address().host_port();
        let connected = match remote.pin() {
            Some(pin) => crabtalk_transport::connect_tls(&address, pin).await,
            None => crabtalk_transport::connect_tcp(&address).await,
        };
        connected.map_err(remote::of)
    }

    /// Whether a daemon listens. Returns an error if starting a daemon would not help.
    pub async fn is_listening(&self) -> Result<bool, Error> {
        let Self::Unix(socket) = self else {
            return self.open().await.map(|_| true);
        };
        match crabtalk_transport::connect(socket).await {
            Ok(_) => Ok(true),
            Err(SocketError::NotListening(_)) => Ok(false),
            Err(error) => Err(Error::NoDaemon(error.to_string())),
        }
    }

    /// The daemon's process as the kernel reports it; `None` if it is unknown or on another machine.
    pub async fn daemon_pid(&self) -> Option<i32> {
        let Self::Unix(socket) = self else {
            return None;
        };
        crabtalk_transport::listener(socket).await
    }

    /// Whether the daemon is on this machine and may be started.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// The token; empty if none is needed.
    pub(crate) fn token(&self) -> &str {
        match self {
            Self::Unix(_) => "",
            Self::Remote(remote) => remote.token(),
        }
    }
}

/// A stream of answers that owns its connection.
pub(crate) type Answers = Pin<Box<dyn Stream<Item = Result<ServerMessage, ClientError>> + Send>>;

/// A connection after the handshake. It carries one request at a time (WIRE-4).
/// [`crabtalk_proto::Client`] has a typed method for each operation.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    welcome: WelcomeMsg,
}

impl Connection {
    /// Sends the Hello; a connection with `component` set is listed as a component.
    pub(crate) async fn greet(
        mut link: Link,
        endpoint: &Endpoint,
        name: &str,
        component: bool,
    ) -> Result<Self, Error> {
        let hello = HelloMsg {
            protocol_version: PROTOCOL_VERSION,
            token: endpoint.token().to_owned(),
            client: name.to_owned(),
            component,
        };
        match tokio::time::timeout(WELCOME_WITHIN, link.hello(hello)).await {
            Ok(Ok(welcome)) => Ok(Self { link, welcome }),
            Ok(Err(ClientError::Refused(status))) => Err(Error::NotWelcome(status)),
            Ok(Err(error)) => {
                let error = Error::from(error);
                // The daemon died during the handshake.
                match endpoint.is_local() && matches!(error, Error::Broken(_)) {
                    true => Err(error),
                    false => Err(Error::NoDaemon(format!(
                        "the daemon does not answer: {error}"
                    ))),
                }
            }
            Err(_) => Err(Error::NoDaemon(format!(
                "the daemon does not answer within {} seconds; it may hang",
                WELCOME_WITHIN.as_secs()
            ))),
        }
    }

    /// Resolves when the daemon closes the connection.
    pub(crate) async fn closed(&mut self) {
        self.link.closed().await;
    }

    /// The daemon's Welcome.
    pub fn welcome(&self) -> &WelcomeMsg {
        &self.welcome
    }

    /// A hint if the daemon has another version.
    pub fn difference(&self) -> Option<String> {
        let (own, daemon) = (crate::VERSION, self.welcome.daemon_version.as_str());
        let is_same = daemon.is_empty() || daemon == own;
        (!is_same).then(|| {
            format!(
                "the daemon has version {daemon}, this client {own}; run `crabtalk daemon restart`"
            )
        })
    }

    /// Sends the only request of the connection and returns its answers.
    pub(crate) fn into_answers(self, request: ClientMessage) -> Answers {
        Box::pin(self.link.into_stream(request))
    }
}

impl crabtalk_proto::Client for Connection {
    async fn request(&mut self, message: ClientMessage) -> Result<ServerMessage, ClientError> {
        self.link.request(message).await
    }

    fn request_stream(
        &mut self,
        message: ClientMessage,
    ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send {
        self.link.request_stream(message)
    }
}
