//! A connection to the daemon, which is started on demand.

use crate::error::Error;
use crate::screen::Screen;
use crate::start;
use crabtalk_config::Home;
use crabtalk_proto::{Client, ClientError, HelloMsg, PROTOCOL_VERSION, code};
use crabtalk_transport::UnixConnection;
use std::path::PathBuf;

/// Where the daemon is.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    socket: PathBuf,
}

impl Endpoint {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// A fresh connection to a daemon that is there. It carries one request at
    /// a time; whoever needs two opens two.
    pub(crate) async fn connect(&self) -> Result<UnixConnection, Error> {
        let mut connection = match crabtalk_transport::connect(&self.socket).await {
            Ok(connection) => connection,
            Err(crabtalk_transport::Error::Connect { path, source }) => {
                let message = format!("cannot connect to {}: {source}", path.display());
                return Err(Error::NoDaemon(message));
            }
            Err(error) => return Err(Error::NoDaemon(error.to_string())),
        };
        let hello = HelloMsg {
            protocol_version: PROTOCOL_VERSION,
            token: String::new(),
            client: concat!("crabtalk/", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        match connection.hello(hello).await {
            // An older daemon knows no Hello, and needs none.
            Ok(_) => Ok(connection),
            Err(ClientError::Refused(status)) if may_do_without(status.code) => Ok(connection),
            Err(ClientError::Refused(status)) => Err(Error::NoDaemon(status.message)),
            Err(error) => Err(Error::NoDaemon(format!(
                "the daemon does not answer: {error}"
            ))),
        }
    }

    /// Whether a daemon answers.
    pub(crate) async fn answers(&self) -> bool {
        self.connect().await.is_ok()
    }

    /// The daemon's process, as the kernel knows it.
    pub(crate) async fn daemon_pid(&self) -> Option<i32> {
        let stream = tokio::net::UnixStream::connect(&self.socket).await.ok()?;
        stream.peer_cred().ok()?.pid()
    }
}

fn may_do_without(refusal: u32) -> bool {
    matches!(refusal, code::BAD_REQUEST | code::NOT_IMPLEMENTED)
}

/// The daemon of this home, started if there is none and that is allowed.
pub(crate) async fn find_or_start(
    home: &Home,
    no_start: bool,
    screen: &mut Screen,
) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::new(home.socket());
    match crabtalk_transport::connect(&home.socket()).await {
        Ok(_) => return Ok(endpoint),
        Err(crabtalk_transport::Error::NotListening { .. }) => {}
        Err(_) => return endpoint.connect().await.map(|_| endpoint),
    }
    if no_start {
        return Err(Error::NoDaemon(format!(
            "no daemon runs for {}, and --no-start forbids starting one: run `crabtalk daemon start`",
            home.root().display()
        )));
    }
    start::start(home, &endpoint, screen).await?;
    Ok(endpoint)
}
