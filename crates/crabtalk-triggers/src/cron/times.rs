//! Converts local minutes to instants across changes of the clock.
//!
//! An expression that matches every hour follows elapsed time: it skips the hour that does
//! not exist and fires in both passes of a repeated one. Any other expression matches times
//! of day: a skipped time becomes the moment of the change, a repeated one fires in the
//! first pass.
//!
//! Invariant: instants are in order and unique.

use crate::cron::Expression;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// Maximum attempts within one change of the clock: twice the minutes of a day.
const TRIES: usize = 3000;

impl Expression {
    /// The first instant after `after`.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.is_hourly() {
            return self.next_as_time_passes(after, zone);
        }
        let mut from = zone.to_datetime(after);
        for _ in 0..TRIES {
            let local = self.at_or_after(from)?;
            let instant = first_pass(local, zone)?;
            if instant > after {
                return Some(instant);
            }
            from = local.checked_add(jiff::Span::new().minutes(1)).ok()?;
        }
        None
    }

    /// The last instant at or before `until`.
    pub fn last_until(&self, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.is_hourly() {
            return self.last_as_time_passes(until, zone);
        }
        let mut from = zone.to_datetime(until);
        if let AmbiguousOffset::Fold { before, after } = zone.to_ambiguous_timestamp(from).offset()
        {
            // The second pass comes after the whole first one.
            let back = i64::from(before.seconds() - after.seconds());
            from = from
                .checked_add(jiff::SignedDuration::from_secs(back))
                .ok()?;
        }
        for _ in 0..TRIES {
            let local = self.at_or_before(from)?;
            let instant = first_pass(local, zone)?;
            if instant <= until {
                return Some(instant);
            }
            from = local.checked_sub(jiff::Span::new().minutes(1)).ok()?;
        }
        None
    }

    fn next_as_time_passes(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut from = after;
        for _ in 0..TRIES {
            let offset = zone.to_offset(from);
            let change = zone.following(from).next().map(|t| t.timestamp());
            let local = self.beyond(offset, from, after)?;
            let instant = offset.to_timestamp(local).ok()?;
            match change {
                Some(change) if instant >= change => from = change,
                _ => return Some(instant),
            }
        }
        None
    }

    /// The first matching local minute at `from`, or after it if that is `after`.
    fn beyond(&self, offset: Offset, from: Timestamp, after: Timestamp) -> Option<DateTime> {
        let from = if from == after {
            from.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?
        } else {
            from
        };
        self.at_or_after(offset.to_datetime(from))
    }

    fn last_as_time_passes(&self, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        const MOMENT: jiff::SignedDuration = jiff::SignedDuration::from_nanos(1);
        let mut from = until;
        for _ in 0..TRIES {
            let offset = zone.to_offset(from);
            // The change that began this offset is at or before `from`.
            let change = zone
                .preceding(from.checked_add(MOMENT).ok()?)
                .next()
                .map(|t| t.timestamp());
            let local = self.at_or_before(offset.to_datetime(from))?;
            let instant = offset.to_timestamp(local).ok()?;
            match change {
                Some(change) if instant < change => from = change.checked_sub(MOMENT).ok()?,
                _ => return Some(instant),
            }
        }
        None
    }
}

/// The instant of a time of day: the first if repeated, the moment of the change if
/// skipped.
pub(crate) fn first_pass(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let early = after.to_timestamp(local).ok()?;
            zone.following(early).next().map(|t| t.timestamp())
        }
    }
}

#[cfg(test)]
mod tests;
