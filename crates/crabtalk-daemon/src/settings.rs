//! The configuration in force, for code that reads it at each use.

use arc_swap::ArcSwap;
use crabtalk_config::Config;
use std::sync::Arc;

/// The current configuration; a reload replaces it.
pub(crate) struct Settings(ArcSwap<Config>);

impl Settings {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self(ArcSwap::from_pointee(config)))
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.0.load_full()
    }

    pub(crate) fn replace(&self, config: Config) {
        self.0.store(Arc::new(config));
    }

    /// Whether a sender has the owner's authority.
    pub(crate) fn is_owner(&self, sender: &str) -> bool {
        crabtalk_domain::is_owner(&self.0.load().owners, sender)
    }
}
