//! The time zone of this machine.

use jiff::tz::TimeZone;

/// The time zone of this process: `TZ`, else the machine's, else UTC.
#[must_use]
pub fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}
