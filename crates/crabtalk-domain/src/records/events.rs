//! Events that wait for the runs that they fire.

use super::Error;
use crate::BoxFuture;
use serde::{Deserialize, Serialize};

/// An event that waits for the runs that it fires.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Event {
    /// Its number, which no other event of the home has.
    pub id: u64,
    /// Where it comes from, as subscriptions name it.
    pub source: String,
    /// The text passed to the agents.
    pub payload: String,
    /// How many runs lie before it in the chain of events, this one included: 1
    /// for what a client publishes.
    pub depth: u32,
    /// The subscriptions that it fires, by number.
    pub fires: Vec<u64>,
    /// The run that ended; used to deduplicate events of the same run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// Keeps events until all that they fire has ended.
///
/// A number is given once. Numbers begin with `at_least`, so that a lost record does
/// not give those again that were given before.
pub trait Events: Send + Sync {
    /// The events that wait, in the order of their numbers.
    fn waiting(&self) -> BoxFuture<'static, Result<Vec<Event>, Error>>;

    /// Adds an event and returns the number that it got.
    fn publish(&self, event: Event, at_least: u64) -> BoxFuture<'static, Result<u64, Error>>;

    /// Removes an event: all that it fired has ended.
    fn done(&self, id: u64) -> BoxFuture<'static, Result<(), Error>>;

    /// A number for a new subscription.
    fn next_subscription(&self, at_least: u64) -> BoxFuture<'static, Result<u64, Error>>;
}
