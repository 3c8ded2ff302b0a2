//! Subscriptions to events, and events whose runs have not started (BUS-1).
//!
//! Invariants: number and bytes of pending events are bounded; the id of a subscription is
//! never reused.

mod event;
mod file;
mod pending;
mod subscription;

pub use event::{
    InvalidSource, MAX_PAYLOAD_BYTES, MAX_SOURCE_BYTES, TooLong, check_payload, check_source,
    is_of_daemon,
};
pub use file::{Finding, MAX_SUBSCRIPTIONS, Read, SUBSCRIPTIONS, read_subscriptions, table};
pub use pending::{MAX_PENDING, MAX_PENDING_BYTES, Pending, PublishError};
pub use subscription::{Subscription, SubscriptionError};
