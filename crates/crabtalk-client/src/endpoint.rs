//! The address of a daemon, a connection to it, and the handshake (WIRE-5).

use crate::error::Error;
use crate::remote::{self, Remote};
use crate::system::{self, LocalConnection};
use crabtalk_proto::{
    Client as _, ClientError, ClientMessage, HelloMsg, PROTOCOL_VERSION, ServerMessage, WelcomeMsg,
    code,
};
use crabtalk_transport::{TcpConnection, TlsConnection};
use futures_core::Stream;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// The socket's name in a home.
const SOCKET: &str = "daemon.sock";

/// Timeout of the Welcome, after which the daemon counts as hanging.
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
        let socket = match self {
            Self::Unix(socket) => socket,
            Self::Remote(remote) => return open_remote(remote).await,
        };
        Ok(Link::Unix(system::connect(socket).await?))
    }

    /// Whether a daemon listens. An error means that starting one would not help.
    pub async fn is_listening(&self) -> Result<bool, Error> {
        let Self::Unix(socket) = self else {
            return self.open().await.map(|_| true);
        };
        system::is_listening(socket).await
    }

    /// The daemon's process as the kernel reports it; `None` if it is unknown or on another machine.
    pub async fn daemon_pid(&self) -> Option<i32> {
        let Self::Unix(socket) = self else {
            return None;
        };
        system::peer_pid(socket).await
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

async fn open_remote(remote: &Remote) -> Result<Link, Error> {
    let address = remote.address().host_port();
    match remote.pin() {
        Some(pin) => {
            let connected = crabtalk_transport::connect_tls(&address, pin).await;
            Ok(Link::Tls(Box::new(connected.map_err(remote::of)?)))
        }
        None => {
            let connected = crabtalk_transport::connect_tcp(&address).await;
            Ok(Link::Tcp(connected.map_err(remote::of)?))
        }
    }
}

/// The connection of each kind of endpoint.
#[derive(Debug)]
pub(crate) enum Link {
    Unix(LocalConnection),
    Tcp(TcpConnection),
    Tls(Box<TlsConnection>),
}

/// Does the same on any kind of connection.
macro_rules! on_link {
    ($link:expr, $connection:ident => $done:expr) => {
        match $link {
            Link::Unix($connection) => $done,
            Link::Tcp($connection) => $done,
            Link::Tls($connection) => $done,
        }
    };
}

/// A stream of answers that owns its connection.
pub(crate) type Answers = Pin<Box<dyn Stream<Item = Result<ServerMessage, ClientError>> + Send>>;

/// A connection after the handshake. It carries one request at a time
/// (WIRE-4). [`crabtalk_proto::Client`] has a
/// typed method for each operation.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    welcome: Option<WelcomeMsg>,
}

impl Connection {
    /// Introduces the client. A daemon before Hello is talked to without, so that it can be restarted.
    pub(crate) async fn greet(link: Link, token: &str, name: &str) -> Result<Self, Error> {
        Self::introduce(link, token, name, false).await
    }

    /// Like [`Self::greet`], for a component that keeps the connection.
    pub(crate) async fn introduce(
        mut link: Link,
        token: &str,
        name: &str,
        component: bool,
    ) -> Result<Self, Error> {
        let hello = HelloMsg {
            protocol_version: PROTOCOL_VERSION,
            token: token.to_owned(),
            client: name.to_owned(),
            component,
        };
        let greeting = async {
            on_link!(&mut link, connection => {
                connection.hello(hello).await
            })
        };
        let Ok(greeted) = tokio::time::timeout(WELCOME_WITHIN, greeting).await else {
            return Err(Error::NoDaemon(format!(
                "the daemon does not answer within {} seconds; it may hang",
                WELCOME_WITHIN.as_secs()
            )));
        };
        let welcome = match greeted {
            Ok(welcome) => Some(welcome),
            Err(ClientError::Refused(status))
                if matches!(status.code, code::BAD_REQUEST | code::NOT_IMPLEMENTED) =>
            {
                None
            }
            Err(ClientError::Refused(status)) => return Err(Error::NotWelcome(status)),
            Err(error) => {
                return Err(match (error.into(), &link) {
                    // A daemon that died during the handshake.
                    (error @ Error::Broken(_), Link::Unix(_)) => error,
                    (error, _) => Error::NoDaemon(format!("the daemon does not answer: {error}")),
                });
            }
        };
        Ok(Self { link, welcome })
    }

    pub(crate) fn silent(link: Link) -> Self {
        let welcome = None;
        Self { link, welcome }
    }

    /// Resolves when the daemon closes the connection.
    pub(crate) async fn closed(&mut self) {
        on_link!(&mut self.link, connection => connection.closed().await);
    }

    /// The daemon's Welcome; `None` without a Hello.
    pub fn welcome(&self) -> Option<&WelcomeMsg> {
        self.welcome.as_ref()
    }

    /// A hint about a daemon of another version.
    pub fn difference(&self) -> Option<String> {
        let own = crate::VERSION;
        let difference = match &self.welcome {
            None => format!("the daemon is older than {own}"),
            Some(welcome) => match welcome.daemon_version.as_str() {
                "" => return None,
                daemon if daemon == own => return None,
                daemon => format!("the daemon has version {daemon}, this client {own}"),
            },
        };
        Some(format!("{difference}; run `crabtalk daemon restart`"))
    }

    /// Sends the only request of the connection and returns its answers.
    pub(crate) fn into_answers(self, request: ClientMessage) -> Answers {
        match self.link {
            Link::Unix(connection) => Box::pin(connection.into_stream(request)),
            Link::Tcp(connection) => Box::pin(connection.into_stream(request)),
            Link::Tls(connection) => Box::pin(connection.into_stream(request)),
        }
    }
}

impl crabtalk_proto::Client for Connection {
    async fn request(&mut self, message: ClientMessage) -> Result<ServerMessage, ClientError> {
        on_link!(&mut self.link, connection => connection.request(message).await)
    }

    fn request_stream(
        &mut self,
        message: ClientMessage,
    ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send {
        match &mut self.link {
            Link::Unix(connection) => connection.request_stream(message).boxed(),
            Link::Tcp(connection) => connection.request_stream(message).boxed(),
            Link::Tls(connection) => connection.request_stream(message).boxed(),
        }
    }
}
