//! What starts runs besides people.
//!
//! ```text
//! cron  schedules: when entries are due, and what becomes of each due time
//! bus   subscriptions: which runs an event starts
//! ```
//!
//! Nothing here looks at a clock, spawns a task, starts a run or knows the protocol.

pub mod bus;
pub mod cron;
