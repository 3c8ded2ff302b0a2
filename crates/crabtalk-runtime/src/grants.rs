//! Network hosts that owners allowed for a conversation until the daemon ends.

use crabtalk_domain::ConversationKey;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of conversations with grants; beyond it all grants are dropped.
const MAX_CONVERSATIONS: usize = 1_000;

/// Hosts by conversation.
#[derive(Debug, Default)]
pub(crate) struct HostGrants(Mutex<HashMap<ConversationKey, BTreeSet<String>>>);

impl HostGrants {
    /// The hosts of a conversation.
    pub(crate) fn of(&self, key: &ConversationKey) -> Vec<String> {
        let granted = self.lock();
        let hosts = granted.get(key).into_iter().flatten();
        hosts.cloned().collect()
    }

    pub(crate) fn add(&self, key: &ConversationKey, hosts: &[String]) {
        let mut granted = self.lock();
        if granted.len() >= MAX_CONVERSATIONS && !granted.contains_key(key) {
            granted.clear();
        }
        let of = granted.entry(key.clone()).or_default();
        of.extend(hosts.iter().cloned());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, BTreeSet<String>>> {
        let granted = self.0.lock();
        granted.expect("no code panics while it holds the grants")
    }
}
