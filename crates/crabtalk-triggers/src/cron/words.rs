//! Formats times for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Days ahead for which a weekday identifies the day.
const A_WEEK: i64 = 6;

/// Formats an instant in local time, relative to another: `today at 17:30 (in 20
/// minutes)`.
pub fn in_words(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (then, today) = (zone.to_datetime(at), zone.to_datetime(now));
    let days = then
        .date()
        .duration_since(today.date())
        .as_hours()
        .div_euclid(24);
    let day = match days {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        2..=A_WEEK => then.strftime("%A").to_string(),
        _ => then.strftime("%A %Y-%m-%d").to_string(),
    };
    let time = then.strftime("%H:%M");
    match distance(at.duration_since(now).as_secs()) {
        Some(distance) => format!("{day} at {time} ({distance})"),
        None => format!("{day} at {time}"),
    }
}

/// The distance in the largest suitable unit.
fn distance(seconds: i64) -> Option<String> {
    let units = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let size = seconds.unsigned_abs();
    let (unit, name) = units.into_iter().find(|(unit, _)| size >= *unit)?;
    // Rounded, so that 59.9 minutes are an hour.
    let count = (size + unit / 2) / unit;
    let plural = if count == 1 { "" } else { "s" };
    Some(if seconds < 0 {
        format!("{count} {name}{plural} ago")
    } else {
        format!("in {count} {name}{plural}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::zone;

    #[test]
    fn times_are_in_plain_words() {
        let berlin = zone("Europe/Berlin").unwrap();
        // A Sunday, eleven o'clock in Berlin.
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        for (at, want) in [
            ("2026-11-22T10:20:00Z", "today at 11:20 (in 20 minutes)"),
            ("2026-11-22T10:00:01Z", "today at 11:00 (in 1 second)"),
            ("2026-11-22T23:30:00Z", "tomorrow at 00:30 (in 14 hours)"),
            ("2026-11-27T08:00:00Z", "Friday at 09:00 (in 5 days)"),
            (
                "2026-12-24T08:00:00Z",
                "Thursday 2026-12-24 at 09:00 (in 32 days)",
            ),
            ("2026-11-21T22:00:00Z", "yesterday at 23:00 (12 hours ago)"),
            ("2026-11-22T10:00:00Z", "today at 11:00"),
        ] {
            assert_eq!(in_words(at.parse().unwrap(), now, &berlin), want);
        }
    }
}
