//! Starts runs that no client asks for: those of cron entries and of events.

use crate::models::Models;
use crate::notify::Notifier;
use crabtalk_config::Home;
use crabtalk_runtime::{Error, RunRequest, Runtime, Subscription};
use crabtalk_tools::FileWork;
use std::sync::Arc;
use std::time::Duration;

/// Until a run is tried again that found no room on the disk: a person needs longer to
/// make some.
pub(crate) const DISK_AGAIN: Duration = Duration::from_secs(5);

/// What it takes.
pub(crate) struct Starter {
    pub(crate) runtime: Runtime,
    pub(crate) models: Arc<Models>,
    /// Who tells the owner how such a run ended.
    pub(crate) notifier: Notifier,
    pub(crate) home: Home,
    /// Turns at looking at files.
    pub(crate) files: FileWork,
}

impl Starter {
    /// Starts a run and reads it from its first event.
    pub(crate) async fn start(&self, request: RunRequest) -> Result<Subscription, Error> {
        // A failure to find a model is the run's to tell.
        let _ = self.models.find().await;
        self.runtime.submit(request)
    }
}
