//! Events of a node: who subscribed to which sources, and which events have not
//! fired yet (BUS-1).
//!
//! This crate starts no run and knows no clock. It reads and edits
//! `subscriptions.toml`, says which subscriptions an event fires, and keeps a
//! journal of events, so that one that was acknowledged outlives a crash.
//!
//! Invariants: an event counts once it is in the journal, and is in there until all
//! that it fires has ended; what is pending is bounded in number and bytes; a
//! subscription's number is never given to another one.

mod event;
mod file;
mod journal;
mod subscription;

pub use event::{
    Event, InvalidSource, MAX_PAYLOAD_BYTES, MAX_SOURCE_BYTES, TooLong, check_payload,
    check_source, is_of_daemon,
};
pub use file::{FileError, Finding, Read, SubscriptionFile};
pub use journal::{Aside, Journal, MAX_PENDING, MAX_PENDING_BYTES, PublishError};
pub use subscription::{Subscription, SubscriptionError};
