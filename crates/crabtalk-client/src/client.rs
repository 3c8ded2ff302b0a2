//! The handle of a daemon: connects and calls operations.

use crate::endpoint::{Connection, Endpoint};
use crate::error::Error;
use crabtalk_proto::{Client as _, ReplyToAsk, Request, code};
use std::time::Duration;

/// Default time for reconnect attempts; replacing a daemon takes some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// First and longest pause between two attempts of [`Client::stay`].
const AWAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A daemon's address and the client's name. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    name: String,
    patience: Duration,
}

/// The outcome of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replied {
    /// The answer was accepted.
    Taken,
    /// The ask was already settled.
    TooLate,
}

impl Client {
    /// A client of this name and version, such as `gateway/1.2`, for the daemon's log.
    pub fn new(endpoint: Endpoint, name: impl Into<String>) -> Self {
        Self {
            endpoint,
            name: name.into(),
            patience: PATIENCE,
        }
    }

    /// Sets the time for reconnect attempts.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The daemon's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Opens a connection. Fails with [`Error::NoDaemon`] if no daemon
    /// answers, [`Error::NotWelcome`] if the daemon refuses.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let link = self.endpoint.open().await?;
        Connection::greet(link, &self.endpoint, &self.name, false).await
    }

    /// Keeps a connection open, so that `crabtalk components` lists this program as connected, under the
    /// client's name without its version. For gateways without a port file. Never returns; waits for a
    /// daemon that is not running.
    pub async fn stay(&self) -> std::convert::Infallible {
        let mut pause = AWAY.0;
        loop {
            if let Ok(link) = self.endpoint.open().await {
                let greeted = Connection::greet(link, &self.endpoint, &self.name, true).await;
                if let Ok(mut connection) = greeted {
                    connection.closed().await;
                    pause = AWAY.0;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AWAY.1);
        }
    }

    /// Performs one operation on a new connection. The request type selects the operation:
    /// `client.call(GetStats::default())`.
    pub async fn call<R: Request>(&self, request: R) -> Result<R::Response, Error> {
        let mut connection = self.connect().await?;
        let answer = connection.request(request.into()).await?;
        Ok(answer.try_into()?)
    }

    /// Answers an ask. A settled ask is not an error; its outcome is in the `AskSettled` event.
    pub async fn reply(&self, reply: ReplyToAsk) -> Result<Replied, Error> {
        match self.call(reply).await {
            Ok(()) => Ok(Replied::Taken),
            Err(Error::Refused(status)) if status.code == code::NOT_FOUND => Ok(Replied::TooLate),
            Err(error) => Err(error),
        }
    }
}
