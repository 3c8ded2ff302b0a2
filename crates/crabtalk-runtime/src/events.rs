//! The life of a run as any number of clients read it (WIRE-6 to WIRE-9).
//!
//! A [`RunLog`] holds a run's events once; every reader has a cursor into it
//! and nothing else. A reader that stops reading therefore costs its cursor,
//! blocks nobody, and misses nothing when it comes back.
//!
//! Invariants: `seq` counts from 1 without a gap; Start is first; exactly one
//! End is last; after the End nothing is added. A place in the queue is no event.

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
