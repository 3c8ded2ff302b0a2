//! A run that is being cancelled, until its End.
//!
//! Invariant: nothing blocks on the cancellation, so another Ctrl-C leaves at any time.

use crabtalk_client::{Client, Error};
use crabtalk_proto::{KillMsg, code};
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Time for the daemon to end the run; it first syncs the last events, which takes
/// seconds on a busy disk.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// A kill request in flight.
type Telling = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A run that is being cancelled.
pub(super) struct Cancelling {
    /// The kill request; `None` once answered.
    kill: Option<Telling>,
    until: Instant,
}

impl Cancelling {
    pub(super) fn begin(client: Client, kill: KillMsg) -> Self {
        Self {
            kill: Some(Box::pin(async move { client.call(kill).await })),
            until: Instant::now() + KILL_TIMEOUT,
        }
    }

    /// Resolves when the End is overdue or the request failed. Cancel safe.
    pub(super) async fn given_up(this: &mut Option<Self>) -> Result<(), Error> {
        let Some(this) = this else {
            return pending().await;
        };
        if let Some(kill) = &mut this.kill {
            let Ok(told) = tokio::time::timeout_at(this.until, kill).await else {
                return Ok(());
            };
            this.kill = None;
            this.until = Instant::now() + KILL_TIMEOUT;
            match told {
                Ok(()) => {}
                // The run ended on its own.
                Err(error) if error.code() == Some(code::NOT_FOUND) => {}
                Err(error) => return Err(error),
            }
        }
        tokio::time::sleep_until(this.until).await;
        Ok(())
    }
}
