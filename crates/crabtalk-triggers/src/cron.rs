//! Schedules: due times of entries, and the books of their outcomes (CRON-1).
//!
//! ```text
//! expression  five fields and @names: local minutes
//! times       local minutes to instants, across changes of the clock
//! zone        names of time zones
//! when        an expression, or a single time
//! quiet       quiet hours
//! words       times in words
//! entry       one checked entry
//! file        `crons.toml`
//! account     the state of one entry
//! engine      decides each due time, and when to check again
//! books       the lines of the engine in the records
//! ```
//!
//! Invariants: no code here reads a clock or waits; each due time has one line in the books,
//! even if the clock is changed.

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
pub use file::{CRONS, Finding, Read, Surroundings, pause, read_crons, replace, table};
pub use quiet::Quiet;
pub use when::{BadTime, When, parse_at};
pub use words::in_words;
pub use zone::{UnknownZone, zone};
