//! A run that was told to end, until its End comes.
//!
//! Invariant: nothing waits for the daemon to hear of it, so that another Ctrl-C
//! leaves at any time.

use crabtalk_client::{Client, Error};
use crabtalk_proto::{KillMsg, code};
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// How long the daemon may take to hear that a run is to end, and the run to say that
/// it has: its last words are synced before they are told, for which a busy disk takes
/// many seconds. Who does not want to wait presses Ctrl-C again.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells the daemon that a run is to end.
type Telling = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A run on the way to its End.
pub(super) struct Cancelling {
    /// Tells the daemon; `None` when it knows.
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

    /// Resolves when the End took too long; or fails, if the daemon did not take the
    /// word. May be dropped and asked for again.
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
