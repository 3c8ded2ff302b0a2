use super::*;
use crate::cron::zone;
use jiff::SignedDuration;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn times(text: &str, name: &str, after: &str, count: usize) -> Vec<String> {
    let expression = Expression::parse(text).unwrap();
    let zone = zone(name).unwrap();
    let mut at: Timestamp = after.parse().unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        at = expression.next_after(at, &zone).unwrap();
        times.push(zone.to_datetime(at).strftime("%m-%d %H:%M").to_string());
    }
    times
}

/// Berlin, 2026-03-29: 02:00 to 03:00 does not come. 2026-10-25: 02:00 to 03:00
/// comes twice.
#[test]
fn daily_times_fire_once_on_days_of_a_change() {
    let berlin = "Europe/Berlin";
    let spring = "2026-03-27T12:00:00Z";
    let autumn = "2026-10-23T12:00:00Z";
    for (text, after, want) in [
        (
            "30 2 * * *",
            spring,
            ["03-28 02:30", "03-29 03:00", "03-30 02:30"],
        ),
        (
            "30 2 * * *",
            autumn,
            ["10-24 02:30", "10-25 02:30", "10-26 02:30"],
        ),
        (
            "0 3 * * *",
            spring,
            ["03-28 03:00", "03-29 03:00", "03-30 03:00"],
        ),
        (
            "0 2,3 * * *",
            "2026-03-28T12:00:00Z",
            ["03-29 03:00", "03-30 02:00", "03-30 03:00"],
        ),
        (
            "*/20 2 * * *",
            "2026-03-29T00:00:00Z",
            ["03-29 03:00", "03-30 02:00", "03-30 02:20"],
        ),
        (
            "*/30 2 * * *",
            "2026-10-24T23:00:00Z",
            ["10-25 02:00", "10-25 02:30", "10-26 02:00"],
        ),
    ] {
        assert_eq!(times(text, berlin, after, 3), want, "{text}");
    }
}

#[test]
fn hourly_times_follow_elapsed_time() {
    let berlin = "Europe/Berlin";
    assert_eq!(
        times("30 * * * *", berlin, "2026-10-24T23:00:00Z", 4),
        ["10-25 01:30", "10-25 02:30", "10-25 02:30", "10-25 03:30"]
    );
    assert_eq!(
        times("*/30 * * * *", berlin, "2026-03-29T00:10:00Z", 3),
        ["03-29 01:30", "03-29 03:00", "03-29 03:30"]
    );
    // Lord Howe puts its clocks on by half an hour.
    assert_eq!(
        times(
            "15 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T14:30:00Z",
            3
        ),
        ["10-04 01:15", "10-04 03:15", "10-04 04:15"]
    );
}

#[test]
fn skipped_midnights_fire_at_the_change() {
    // Cairo, 2026-04-24: the clock goes from 00:00 to 01:00.
    assert_eq!(
        times("0 0 * * *", "Africa/Cairo", "2026-04-22T22:30:00Z", 2),
        ["04-24 01:00", "04-25 00:00"]
    );
    // Samoa left out a whole day.
    assert_eq!(
        times("0 9 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", 3),
        ["12-31 00:00", "12-31 09:00", "01-01 09:00"]
    );
}

#[test]
fn leap_days_and_centuries_are_found() {
    assert_eq!(
        times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1),
        ["02-29 00:00"]
    );
    let expression = Expression::parse("0 0 29 2 *").unwrap();
    let next = expression.next_after("2096-03-01T00:00:00Z".parse().unwrap(), &TimeZone::UTC);
    assert_eq!(next.unwrap().to_string(), "2104-02-29T00:00:00Z");
    // The end of what calendars know.
    assert_eq!(expression.next_after(Timestamp::MAX, &TimeZone::UTC), None);
    assert_eq!(expression.last_until(Timestamp::MIN, &TimeZone::UTC), None);
}

const ZONES: [&str; 9] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Pacific/Apia",
];

fn field(first: u8, last: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (first..=last).prop_map(|n| n.to_string()),
        (first..=last, first..=last).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (2..=12_u8).prop_map(|n| format!("*/{n}")),
        (first..=last, first..=last).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

fn expressions() -> impl Strategy<Value = Expression> {
    (
        field(0, 59),
        field(0, 23),
        field(1, 31),
        field(1, 12),
        field(0, 7),
    )
        .prop_filter_map("never", |(m, h, d, mo, w)| {
            Expression::parse(&format!("{m} {h} {d} {mo} {w}")).ok()
        })
}

/// A field of two numbers.
fn two(first: u8, last: u8) -> impl Strategy<Value = String> {
    (first..=last, first..=last).prop_map(|(a, b)| format!("{a},{b}"))
}

/// A field that is mostly `*`.
fn mostly_any(first: u8, last: u8) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("*".to_owned()), 1 => two(first, last)]
}

/// The times of an expression of such fields by walking through every minute: what the
/// rules say, without the search.
fn walk(fields: &[String; 5], zone: &TimeZone, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let names = |at: usize, number: i8| {
        fields[at] == "*" || fields[at].split(',').any(|n| n.parse() == Ok(number))
    };
    let [_, hour, day, _, weekday] = fields;
    let fires = |local: DateTime| {
        let on_day = names(2, local.day());
        let on_weekday = names(4, local.weekday().to_sunday_zero_offset());
        let either = day != "*" && weekday != "*";
        names(0, local.minute())
            && names(1, local.hour())
            && names(3, local.month())
            && (if either {
                on_day || on_weekday
            } else {
                on_day && on_weekday
            })
    };
    let minute = SignedDuration::from_mins(1);
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut local = zone.to_datetime(from - minute);
    for step in 0..minutes {
        let at = from + SignedDuration::from_mins(step);
        let mut passed = std::mem::replace(&mut local, zone.to_datetime(at));
        if hour == "*" {
            found.extend(fires(local).then_some(at));
            continue;
        }
        // Skipped times fall on the moment of the change.
        let mut due = fires(local) && seen.insert(local);
        passed = passed.saturating_add(minute);
        while passed < local {
            due |= fires(passed) && seen.insert(passed);
            passed = passed.saturating_add(minute);
        }
        found.extend(due.then_some(at));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Forth and back meet: what comes next is the last one of what was.
    #[test]
    fn next_and_last_agree(
        expression in expressions(),
        zone_at in 0..ZONES.len(),
        seconds in 1_262_304_000_i64..2_208_988_800,
    ) {
        let zone = zone(ZONES[zone_at]).unwrap();
        let mut at = Timestamp::from_second(seconds).unwrap();
        for _ in 0..20 {
            let Some(next) = expression.next_after(at, &zone) else { break };
            prop_assert!(next > at);
            prop_assert_eq!(expression.last_until(next, &zone), Some(next));
            let before = next - jiff::SignedDuration::from_secs(1);
            let last = expression.last_until(before, &zone);
            prop_assert!(last.is_none_or(|last| last <= at), "{:?} at {} next {}", last, at, next);
            if let Some(last) = last {
                prop_assert_eq!(expression.next_after(last, &zone), Some(next));
            }
            at = next;
        }
    }

    /// Also on days on which the clock changes.
    #[test]
    fn times_agree_with_a_walk_through_every_minute(
        minute in two(0, 59),
        hour in prop_oneof![Just("*".to_owned()), two(0, 23), two(0, 4)],
        day in mostly_any(1, 31),
        month in mostly_any(1, 12),
        weekday in mostly_any(0, 6),
        zone_at in 0..ZONES.len(),
        minutes in 21_038_400_i64..36_816_480,
    ) {
        let fields = [minute, hour, day, month, weekday];
        let text = fields.join(" ");
        let Ok(expression) = Expression::parse(&text) else { return Ok(()) };
        let zone = zone(ZONES[zone_at]).unwrap();
        let mut from = Timestamp::from_second(minutes * 60).unwrap();
        if let Some(change) = zone.following(from).next() {
            let minutes = change.timestamp().as_second() / 60 - 30 * 60;
            from = Timestamp::from_second(minutes * 60).unwrap();
        }
        let want = walk(&fields, &zone, from, 60 * 60);
        let until = from + SignedDuration::from_hours(60);
        let mut at = from - SignedDuration::from_secs(1);
        let found = std::iter::from_fn(|| {
            at = expression.next_after(at, &zone)?;
            Some(at)
        });
        let found: Vec<Timestamp> = found.take_while(|at| *at < until).collect();
        prop_assert_eq!(found, want, "{} in {}", text, ZONES[zone_at]);
    }
}
