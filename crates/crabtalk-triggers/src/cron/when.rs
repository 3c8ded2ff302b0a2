//! The due times of an entry: an expression, or a single time.

use crate::cron::times::first_pass;
use crate::cron::{BadExpression, Expression};
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

/// The due times of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// All minutes that the expression matches.
    Schedule(Expression),
    /// This instant only.
    At(Timestamp),
}

impl When {
    /// The first due time after an instant.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Schedule(expression) => expression.next_after(after, zone),
            Self::At(at) => (*at > after).then_some(*at),
        }
    }

    /// The last due time at or before an instant.
    pub fn last_until(&self, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Schedule(expression) => expression.last_until(until, zone),
            Self::At(at) => (*at <= until).then_some(*at),
        }
    }
}

/// Maximum distance of a single time.
const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// Longest text of a time.
const MAX_BYTES: usize = 80;

/// Why a time is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// The format is unknown.
    #[error(
        "{0:?} is not a time: write 17:30, 2026-12-24 17:30, 2026-12-24T17:30:00+01:00, or `in 20m`"
    )]
    Unreadable(String),
    /// The time is in the past.
    #[error("{0} has passed")]
    Past(String),
    /// The time is too far ahead.
    #[error("{0} is more than ten years away")]
    Far(String),
    /// The expression is invalid.
    #[error(transparent)]
    Expression(#[from] BadExpression),
}

/// Parses a single time: `in 20m`, `17:30` (the next one), a local date and time,
/// or an instant with its offset. The caller checks that it is in the future.
pub fn parse_at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, BadTime> {
    let text = text.trim();
    let unreadable = || BadTime::Unreadable(text.chars().take(MAX_BYTES).collect());
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(unreadable());
    }
    let lower = text.to_ascii_lowercase();
    if let Some(wait) = lower.strip_prefix("in ").or(lower.strip_prefix('+')) {
        let wait = wait.trim();
        // Without a unit it could mean minutes or seconds.
        let span: Span = wait.parse().map_err(|_| unreadable())?;
        let at = now.to_zoned(zone.clone()).checked_add(span);
        let at = at.map_err(|_| BadTime::Far(text.to_owned()))?.timestamp();
        return if at > now {
            Ok(at)
        } else {
            Err(BadTime::Past(text.to_owned()))
        };
    }
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned.timestamp());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    // `17:30` does not parse as a date and time.
    let time = text
        .parse::<Time>()
        .ok()
        .filter(|_| text.contains(':') && !text.contains('-'));
    let local = if let Some(time) = time {
        let today = zone.to_datetime(now).date();
        let days = [Some(today), today.tomorrow().ok()];
        let mut next = days
            .into_iter()
            .flatten()
            .filter_map(|day| first_pass(day.to_datetime(time), zone))
            .filter(|at| *at > now);
        return next.next().ok_or_else(unreadable);
    } else {
        text.parse::<DateTime>().ok().filter(|_| text.contains(':'))
    };
    let local = local.ok_or_else(unreadable)?;
    first_pass(local, zone).ok_or_else(unreadable)
}

/// Refuses a single time in the past or too far ahead.
pub(crate) fn ahead(text: &str, at: Timestamp, now: Timestamp) -> Result<(), BadTime> {
    if at <= now {
        return Err(BadTime::Past(text.to_owned()));
    }
    if at.duration_since(now) > MAX_AHEAD {
        return Err(BadTime::Far(text.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::zone;

    fn at(text: &str) -> Result<String, String> {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        let berlin = zone("Europe/Berlin").unwrap();
        let at = parse_at(text, now, &berlin).and_then(|at| ahead(text, at, now).map(|()| at));
        at.map(|at| at.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn single_times_are_parsed() {
        for (text, want) in [
            ("in 20m", "2026-11-22T10:20:00Z"),
            ("+1h30m", "2026-11-22T11:30:00Z"),
            ("in 2 days", "2026-11-24T10:00:00Z"),
            ("in 1s", "2026-11-22T10:00:01Z"),
            ("17:30", "2026-11-22T16:30:00Z"),
            ("09:00", "2026-11-23T08:00:00Z"),
            ("2026-12-24 17:30", "2026-12-24T16:30:00Z"),
            ("2026-12-24T17:30:05", "2026-12-24T16:30:05Z"),
            ("2026-12-24T17:30:00+05:00", "2026-12-24T12:30:00Z"),
            ("2026-12-24T17:30:00Z", "2026-12-24T17:30:00Z"),
            // One time is skipped by the clock, another repeated.
            ("2027-03-28 02:30", "2027-03-28T01:00:00Z"),
            ("2027-10-31 02:30", "2027-10-31T00:30:00Z"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn invalid_single_times_have_clear_errors() {
        for (text, want) in [
            ("", "is not a time"),
            ("soon", "is not a time"),
            ("in 20", "is not a time"),
            ("in -20m", "has passed"),
            ("in 0s", "has passed"),
            ("25:00", "is not a time"),
            ("2026-02-30 10:00", "is not a time"),
            ("2026-12-24", "is not a time"),
            ("2026-11-22T09:59:00Z", "has passed"),
            ("in 99999 years", "is"),
            ("2099-01-01 10:00", "more than ten years away"),
        ] {
            let error = at(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
