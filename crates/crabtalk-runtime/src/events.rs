//! The events of runs, for any number of readers (WIRE-6 to WIRE-9).
//!
//! A [`RunLog`] stores a run's events once; each reader has a cursor into it. A
//! reader that stops reading blocks no other and continues where it stopped.
//!
//! Invariants: `seq` counts from 1 without a gap; Start is first; exactly one End is
//! last. The position in the queue is not an event.

mod answer;
mod entry;
mod hub;
mod log;

pub use answer::RunAnswer;
pub(crate) use hub::Hub;
pub use hub::{HubEvent, HubSubscription, Missed};
pub use log::{COMPACTION, RunLog, Sequenced, Subscription, Waits};

#[cfg(test)]
mod tests;
