//! Pauses between attempts to connect again.

use crate::error::Error;
use std::time::Duration;
use tokio::time::Instant;

/// First pause, doubling up to [`LONGEST`]: most losses are over at once.
const FIRST: Duration = Duration::from_millis(20);

/// Longest pause: a person who looks on should not wait for a timer.
const LONGEST: Duration = Duration::from_secs(1);

/// Attempts since a connection was lost.
#[derive(Debug)]
pub(crate) struct Again {
    lost_at: Instant,
    patience: Duration,
    pause: Duration,
}

impl Again {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            lost_at: Instant::now(),
            patience,
            pause: FIRST,
        }
    }

    /// Waits before the next attempt, or says that it has been long enough.
    pub(crate) async fn after(&mut self, failed: Error) -> Result<(), Error> {
        if !failed.may_pass() {
            return Err(failed);
        }
        if self.lost_at.elapsed() + self.pause > self.patience {
            return Err(Error::Lost {
                secs: self.patience.as_secs(),
                why: failed.to_string(),
            });
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }
}
