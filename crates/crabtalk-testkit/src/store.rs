//! Storage in memory with injected faults and crashes.
//!
//! It is stricter than a disk: appended and synced records are separate,
//! so that a test can check the state after a power loss.

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a reader of a log looks for one kind of record"
)]
mod log;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a reader of a log looks for one kind of record"
)]
mod open;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a reader of a log looks for one kind of record"
)]
mod port;

use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::Record;
use log::{Log, line};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

#[derive(Default)]
struct State {
    logs: BTreeMap<ConversationKey, Log>,
    /// Removed conversations; the last one was removed last.
    trash: Vec<(ConversationKey, Log)>,
    appends_left: Option<usize>,
    hold_syncs: bool,
    hold_opens: bool,
    panic_in_opens: bool,
    /// Notifies tasks waiting for a log.
    opens: Arc<Notify>,
}

/// A store in memory. Clones share it, so that a test may reopen it.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("not poisoned")
    }

    fn panics_in_opens(&self) -> bool {
        self.state().panic_in_opens
    }

    /// Fails appends, as on a full disk, after this many; `None`
    /// makes room again.
    pub fn fail_after(&self, appends: Option<usize>) {
        self.state().appends_left = appends;
    }

    /// Makes later syncs hang, like on a hanging disk, or continue.
    pub fn hold_syncs(&self, hold: bool) {
        self.state().hold_syncs = hold;
    }

    /// Makes later opens of a log hang, like on a hanging disk, or
    /// continue.
    pub fn hold_opens(&self, hold: bool) {
        let mut state = self.state();
        state.hold_opens = hold;
        state.opens.notify_waiters();
    }

    /// Makes later opens of a log panic, to simulate a defect in a store.
    pub fn panic_in_opens(&self, panic: bool) {
        self.state().panic_in_opens = panic;
    }

    /// The appended records as short lines, without state changes other than the title.
    pub fn lines(&self, key: &ConversationKey) -> Vec<String> {
        let state = self.state();
        state
            .logs
            .get(key)
            .into_iter()
            .flat_map(|log| &log.records)
            .map(line)
            .filter(|line| line != "meta")
            .collect()
    }

    /// The appended records.
    pub fn records(&self, key: &ConversationKey) -> Vec<Record> {
        let state = self.state();
        let log = state.logs.get(key);
        log.map(|log| log.records.clone()).unwrap_or_default()
    }

    /// Another store with the current contents, as after a kill and restart at
    /// this instant.
    pub fn snapshot(&self) -> Self {
        let state = self.state();
        Self(Arc::new(Mutex::new(State {
            logs: state.logs.clone(),
            trash: state.trash.clone(),
            ..State::default()
        })))
    }

    /// Like [`MemoryStore::snapshot`], after a power cut.
    pub fn power_cut(&self) -> Self {
        let cut = self.snapshot();
        for log in cut.state().logs.values_mut() {
            log.records.truncate(log.synced);
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryStore;
    use crate::contract::{Subject, check};
    use crabtalk_domain::storage::Storage;

    impl Subject for MemoryStore {
        fn storage(&self) -> &dyn Storage {
            self
        }

        fn restart(&mut self) {
            *self = self.snapshot();
        }

        fn cut_power(&mut self) {
            *self = MemoryStore::power_cut(self);
        }

        fn set_full(&mut self, full: bool) {
            self.fail_after(full.then_some(0));
        }
    }

    #[tokio::test]
    async fn memory_store_fulfils_the_contract() {
        check(MemoryStore::default).await;
    }
}
