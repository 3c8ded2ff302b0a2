//! Starts the runs of cron entries and events.

use crate::models::Models;
use crate::notify::Notifier;
use crabtalk_config::Home;
use crabtalk_runtime::{Error, RunRequest, Runtime, Subscription};
use crabtalk_tools::FileWork;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a run is retried because the disk was full.
pub(crate) const DISK_AGAIN: Duration = Duration::from_secs(5);

/// Everything that is needed to start a run.
pub(crate) struct Starter {
    pub(crate) runtime: Runtime,
    pub(crate) models: Arc<Models>,
    /// Notifies the owner of the end of a run.
    pub(crate) notifier: Notifier,
    pub(crate) home: Home,
    /// The threads for file access.
    pub(crate) files: FileWork,
}

impl Starter {
    /// Starts a run and subscribes to its first event.
    pub(crate) async fn start(&self, request: RunRequest) -> Result<Subscription, Error> {
        // The run reports a failure to find a model.
        let _ = self.models.find().await;
        self.runtime.submit(request)
    }
}
