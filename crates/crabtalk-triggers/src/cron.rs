//! Schedules: when entries are due, what becomes of each due time, and the
//! books of it (CRON-1).
//!
//! ```text
//! expression  five fields and @names: which local minutes
//! times       local minutes into instants, through changes of the clock
//! zone        names of time zones
//! when        an expression, or one time only
//! quiet       hours in which nothing fires
//! words       a time as a person says it
//! entry       one entry, checked
//! file        `crons.toml`, read by hand and edited with comments kept
//! account     what the books say of one entry
//! engine      decides what becomes of each due time, and when to look again
//! books       the lines of that, in the records
//! ```
//!
//! Invariants: nothing here looks at a clock or waits; a due time has one line
//! in the books, whatever the clock does.
//!
//! Absent: the daemon, runs, tasks, the protocol. What fires is the caller's
//! to start.

mod account;
mod books;
mod engine;
mod entry;
mod expression;
mod file;
mod quiet;
#[cfg(test)]
mod tests;
mod times;
mod when;
mod words;
mod zone;

pub use account::{Account, Ended, Fired, Line, Outcome, Skipped, Usage, Why};
pub use books::{Books, Loaded, Row};
pub use engine::{Engine, Fire, Settings, Tick};
pub use entry::{Asks, CronEntry, Draft, Invalid, Missed, Notify};
pub use expression::{BadExpression, Expression};
pub use file::{CronFile, FileError, Finding, Read, Surroundings};
pub use quiet::Quiet;
pub use when::{BadTime, When, parse_at};
pub use words::in_words;
pub use zone::{UnknownZone, zone};
