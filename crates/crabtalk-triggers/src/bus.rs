//! Events of a node: who subscribed to which sources, and which events have not
//! fired yet (BUS-1).
//!
//! This crate starts no run and knows no clock. It reads and edits
//! `subscriptions.toml`, and says which subscriptions an event fires.
//!
//! Invariants: what is pending is bounded in number and bytes; a subscription's
//! number is never given to another one.

mod event;
mod file;
mod pending;
mod subscription;

pub use event::{
    InvalidSource, MAX_PAYLOAD_BYTES, MAX_SOURCE_BYTES, TooLong, check_payload, check_source,
    is_of_daemon,
};
pub use file::{FileError, Finding, Read, SubscriptionFile};
pub use pending::{MAX_PENDING, MAX_PENDING_BYTES, Pending, PublishError};
pub use subscription::{Subscription, SubscriptionError};
