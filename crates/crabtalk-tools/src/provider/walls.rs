//! The configured sandbox, and its walls on this machine.

use crate::bash::Probe;
use crabtalk_guardian::{SandboxConfig, Walls};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// How long incomplete walls are cached; another probe takes a few
/// milliseconds.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The walls that a probe found, and its time.
struct Probed {
    walls: Arc<Walls>,
    at: Instant,
}

impl Probed {
    /// Whether to probe again. Complete walls stay; others may have a temporary cause, for
    /// example that the machine could not start another process.
    fn is_worth_another_look(&self) -> bool {
        !self.walls.are_complete() && self.at.elapsed() > LOOK_AGAIN
    }
}

/// A sandbox and its walls.
pub(super) struct SandboxOf {
    /// Replaced when the owner changes it.
    config: RwLock<Arc<SandboxConfig>>,
    /// The walls of this machine with that configuration.
    walls: Mutex<Arc<OnceCell<Probed>>>,
}

impl SandboxOf {
    pub(super) fn new(config: SandboxConfig) -> Self {
        Self {
            config: RwLock::new(Arc::new(config)),
            walls: Mutex::default(),
        }
    }

    pub(super) fn set(&self, config: SandboxConfig) {
        let mut now = self.config.write().unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(config);
        drop(now);
        // The system may have changed together with the configuration.
        let mut walls = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        *walls = Arc::default();
    }

    pub(super) fn config(&self) -> Arc<SandboxConfig> {
        let now = self.config.read();
        Arc::clone(&now.unwrap_or_else(PoisonError::into_inner))
    }

    /// The cached walls, or those that a probe finds.
    pub(super) async fn walls<'a>(
        &self,
        probe: impl FnOnce(Arc<SandboxConfig>) -> Probe<'a>,
    ) -> Arc<Walls> {
        let walls = {
            let mut now = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
            if now.get().is_some_and(Probed::is_worth_another_look) {
                *now = Arc::default();
            }
            Arc::clone(&now)
        };
        let found = walls.get_or_init(async || Probed {
            walls: Arc::new(probe(self.config()).walls().await),
            at: Instant::now(),
        });
        Arc::clone(&found.await.walls)
    }
}
