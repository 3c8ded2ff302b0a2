//! Published events that wait for the runs that they fire.

use super::Error;
use crate::BoxFuture;
use serde::{Deserialize, Serialize};

/// A published event that waits for the runs that it fires.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Event {
    /// The event's number, unique in the home.
    pub id: u64,
    /// The source, as subscriptions name it.
    pub source: String,
    /// The text for the agents.
    pub payload: String,
    /// Position in the chain of events: 1 unless the event reports the end of a run
    /// that an event fired.
    pub depth: u32,
    /// Numbers of the subscriptions that the event fires.
    pub fires: Vec<u64>,
    /// The run whose end published the event; identifies duplicates.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// Stores events until all the runs that they fire have ended.
///
/// Numbers are never reused: the next one is at least `at_least`, also if records
/// were lost.
pub trait Events: Send + Sync {
    /// Waiting events in the order of their numbers.
    fn waiting(&self) -> BoxFuture<'static, Result<Vec<Event>, Error>>;

    /// Adds an event and returns its number.
    fn publish(&self, event: Event, at_least: u64) -> BoxFuture<'static, Result<u64, Error>>;

    /// Removes an event after all the runs that it fired have ended.
    fn done(&self, id: u64) -> BoxFuture<'static, Result<(), Error>>;

    /// Returns a number for a new subscription.
    fn next_subscription(&self, at_least: u64) -> BoxFuture<'static, Result<u64, Error>>;
}
