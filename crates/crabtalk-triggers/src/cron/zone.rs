//! Names of time zones.
//!
//! Invariant: a zone is known on every machine: the system's database has priority, since it
//! is updated, and the built-in one follows.

use jiff::tz::TimeZone;

/// Longest name; the longest in the database has about thirty letters.
const MAX_BYTES: usize = 64;

/// The time zone is unknown; holds its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0:?}: write a name of the tz database, such as Europe/Berlin or UTC")]
pub struct UnknownZone(pub String);

/// Finds the time zone with a name.
pub fn zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let unknown = || UnknownZone(name.chars().take(MAX_BYTES).collect());
    if name.len() > MAX_BYTES {
        return Err(unknown());
    }
    TimeZone::get(name).map_err(|_| unknown())
}
