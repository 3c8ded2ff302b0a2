//! Holds once what runs of one agent have alike.
//!
//! Invariant: nothing is held that no run in flight holds.

use crabtalk_domain::AgentName;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// For each agent the value that its runs were given last.
pub(crate) struct Interned<T: ?Sized>(Mutex<HashMap<AgentName, Weak<T>>>);

impl<T: ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized + PartialEq> Interned<T> {
    /// The value that other runs of this agent hold, if it is equal to this one; else
    /// this one, for those that follow.
    pub(crate) fn share<V>(&self, agent: &AgentName, value: V) -> Arc<T>
    where
        V: Borrow<T> + Into<Arc<T>>,
    {
        // Nothing in here panics half-way through a change.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = last.get(agent).and_then(Weak::upgrade);
        if let Some(held) = held.filter(|held| **held == *value.borrow()) {
            return held;
        }
        let value = value.into();
        last.retain(|_, held| held.strong_count() > 0);
        last.insert(agent.clone(), Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_held_once_and_as_long_as_somebody_holds_them() {
        let name = |name: &str| AgentName::new(name).expect("valid");
        let (crab, crow) = (name("crab"), name("crow"));
        let prompts = Interned::<str>::default();
        let brief = prompts.share(&crab, "Be brief.".to_owned());
        let again = prompts.share(&crab, "Be brief.".to_owned());
        assert!(Arc::ptr_eq(&brief, &again));
        // Whoever runs still does so with what it began with.
        let kind = prompts.share(&crab, "Be kind.".to_owned());
        assert_eq!((&*brief, &*kind), ("Be brief.", "Be kind."));
        drop((brief, again, kind));
        let _crow = prompts.share(&crow, "Caw.".to_owned());
        assert_eq!(prompts.0.lock().expect("no panic").len(), 1);
    }
}
