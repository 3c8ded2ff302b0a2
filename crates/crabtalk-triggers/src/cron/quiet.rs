//! Quiet hours, in which no entry fires.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// Local times from a start to an end, over midnight if the end is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    start: Time,
    end: Time,
}

impl Quiet {
    /// Parses start and end; one alone has no effect but must be valid.
    ///
    /// # Errors
    ///
    /// A time is not `HH:MM`, or both are equal.
    pub fn parse(start: Option<&str>, end: Option<&str>) -> Result<Option<Self>, String> {
        let read = |text: Option<&str>| {
            let text = text.map(str::trim).filter(|text| !text.is_empty());
            text.map(time).transpose()
        };
        let (start, end) = (read(start)?, read(end)?);
        match (start, end) {
            (Some(start), Some(end)) if start == end => Err(format!(
                "quiet hours from {start:.5} to {end:.5} begin and end at the same time: give two \
                 different times",
                start = start.to_string(),
                end = end.to_string()
            )),
            (Some(start), Some(end)) => Ok(Some(Self { start, end })),
            _ => Ok(None),
        }
    }

    /// Whether an instant is within the quiet hours.
    pub fn holds(&self, at: Timestamp, zone: &TimeZone) -> bool {
        let time = zone.to_datetime(at).time();
        if self.start < self.end {
            self.start <= time && time < self.end
        } else {
            self.start <= time || time < self.end
        }
    }
}

fn time(text: &str) -> Result<Time, String> {
    let bad = || {
        format!(
            "{:.20?} is not a time of day: write HH:MM, such as 23:00",
            text
        )
    };
    let (hour, minute) = text.split_once(':').ok_or_else(bad)?;
    let number = |text: &str| {
        let digits = text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| digits)
    };
    let (hour, minute) = number(hour).zip(number(minute)).ok_or_else(bad)?;
    Time::new(hour, minute, 0, 0).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::zone;

    #[test]
    fn quiet_hours_hold_in_local_time_and_over_midnight() {
        let berlin = zone("Europe/Berlin").unwrap();
        let check = |start, end, at: &str, want| {
            let quiet = Quiet::parse(Some(start), Some(end)).unwrap().unwrap();
            let at: Timestamp = at.parse().unwrap();
            assert_eq!(quiet.holds(at, &berlin), want, "{start}-{end} at {at}");
        };
        // Summer: two hours ahead; winter: one.
        check("23:00", "07:00", "2026-07-01T20:59:59Z", false);
        check("23:00", "07:00", "2026-07-01T21:00:00Z", true);
        check("23:00", "07:00", "2026-07-02T04:59:59Z", true);
        check("23:00", "07:00", "2026-07-02T05:00:00Z", false);
        check("23:00", "07:00", "2026-12-01T05:30:00Z", true);
        check("9:00", "17:00", "2026-12-01T08:00:00Z", true);
        check("9:00", "17:00", "2026-12-01T16:00:00Z", false);
        check(
            "00:00",
            "24:00".replace("24:00", "23:59").as_str(),
            "2026-12-01T22:58:00Z",
            true,
        );
    }

    #[test]
    fn single_ends_are_ignored_but_checked() {
        assert_eq!(Quiet::parse(Some("23:00"), None), Ok(None));
        assert_eq!(Quiet::parse(Some("23:00"), Some("")), Ok(None));
        assert_eq!(Quiet::parse(None, None), Ok(None));
        for bad in ["24:00", "7", "7:60", "-1:00", "+1:00", "07:00:00", "é:é"] {
            assert!(Quiet::parse(Some(bad), None).is_err(), "{bad}");
            assert!(Quiet::parse(Some("23:00"), Some(bad)).is_err(), "{bad}");
        }
        let same = Quiet::parse(Some("7:00"), Some("07:00")).unwrap_err();
        assert!(same.contains("begin and end at the same time"), "{same}");
    }
}
