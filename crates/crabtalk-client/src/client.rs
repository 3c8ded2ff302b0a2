//! The handle of a daemon: connect and call. What follows a run, watches all or
//! starts a daemon is beside what it gives.

use crate::endpoint::{Connection, Endpoint};
use crate::error::Error;
use crabtalk_proto::{Client as _, ReplyToAsk, Request, code};
use std::time::Duration;

/// How long another connection is tried for after one was lost: a daemon that
/// is replaced needs some seconds, a person who waits has no more patience.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks for a daemon by whoever only wants to be known: the first
/// pause and the longest.
const AWAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A daemon and who talks to it. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    name: String,
    patience: Duration,
}

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replied {
    /// It counts.
    Taken,
    /// Somebody else answered before, or nobody has to any more.
    TooLate,
}

impl Client {
    /// A client of this name and version, such as `gateway/1.2`, which the
    /// daemon's log tells.
    pub fn new(endpoint: Endpoint, name: impl Into<String>) -> Self {
        Self {
            endpoint,
            name: name.into(),
            patience: PATIENCE,
        }
    }

    /// How long another connection is tried for after one was lost.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where the daemon is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// A connection of one's own. Fails with [`Error::NoDaemon`] if nobody
    /// answers, [`Error::NotWelcome`] if the daemon refuses.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let link = self.endpoint.open().await?;
        Connection::greet(link, self.endpoint.token(), &self.name).await
    }

    /// Lets the daemon know that this program is there, for as long as this is
    /// polled: `crabtalk components` lists it as connected, under the client's name
    /// without its version. For gateways; whoever announces a port is known by that.
    /// Over lost connections, for ever, and whether or not there is a daemon.
    pub async fn stay(&self) -> std::convert::Infallible {
        let mut pause = AWAY.0;
        loop {
            if let Ok(link) = self.endpoint.open().await {
                let token = self.endpoint.token();
                let greeted = Connection::introduce(link, token, &self.name, true).await;
                if let Ok(mut connection) = greeted {
                    connection.closed().await;
                    pause = AWAY.0;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AWAY.1);
        }
    }

    /// A connection on which nothing was said: the daemon takes its client for
    /// one of the older generation, and sends it nothing that is newer.
    pub async fn connect_without_hello(&self) -> Result<Connection, Error> {
        Ok(Connection::silent(self.endpoint.open().await?))
    }

    /// Whether a daemon answers.
    pub async fn answers(&self) -> bool {
        self.connect().await.is_ok()
    }

    /// Asks for one thing and gives the answer, on a connection of its own, so
    /// that nothing waits for anything else. The request says the operation:
    /// `client.call(GetStats::default())`.
    pub async fn call<R: Request>(&self, request: R) -> Result<R::Response, Error> {
        let mut connection = self.connect().await?;
        let answer = connection.request(request.into()).await?;
        Ok(answer.try_into()?)
    }

    /// Answers an ask. That somebody else was faster is no error; how an ask
    /// ended is told by its `AskSettled` in any case.
    pub async fn reply(&self, reply: ReplyToAsk) -> Result<Replied, Error> {
        match self.call(reply).await {
            Ok(()) => Ok(Replied::Taken),
            Err(Error::Refused(status)) if status.code == code::NOT_FOUND => Ok(Replied::TooLate),
            Err(error) => Err(error),
        }
    }
}
