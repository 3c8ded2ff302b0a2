//! Names of time zones.
//!
//! Invariant: a zone is known on every machine: the system's database is used
//! first, since it is kept up to date, then the built-in one.

use jiff::tz::TimeZone;

/// Longest name: the database's longest has some thirty letters.
const MAX_BYTES: usize = 64;

/// An unknown zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0:?}: write a name of the tz database, such as Europe/Berlin or UTC")]
pub struct UnknownZone(pub String);

/// The zone of a name.
pub fn zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let unknown = || UnknownZone(name.chars().take(MAX_BYTES).collect());
    if name.len() > MAX_BYTES {
        return Err(unknown());
    }
    TimeZone::get(name).map_err(|_| unknown())
}
