//! Schedules against another implementation: PyPI's croniter, over ten years of
//! random expressions in zones that change their clocks.
//!
//! `CRABTALK_CRONITER` names a Python that has it. Without one the test is
//! skipped by name; `CRABTALK_REQUIRE_TOOLS=1` forbids that.
//!
//! Both agree on all times more than a day from a change of the clock. On the days
//! of a change the rules of `docs/spec/cron.md` differ on purpose, and a walk through
//! every minute is the oracle.

use crabtalk_testkit::tools::installed;
use crabtalk_triggers::cron::{Expression, zone};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/croniter/next.py");

const VARIABLE: &str = "CRABTALK_CRONITER";

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Antarctica/Troll",
];

/// Expressions that are tried, and times of each.
const EXPRESSIONS: usize = 300;
const TIMES: usize = 120;

/// 2020 to 2030.
const FIRST: i64 = 1_577_836_800;
const SPAN: u64 = 315_576_000;

/// A generator that gives the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn field(&mut self, first: u64, last: u64) -> String {
        let number = |dice: &mut Self| first + dice.below(last - first + 1);
        let (a, b) = (number(self), number(self));
        let (low, high) = (a.min(b), a.max(b));
        match self.below(9) {
            0..=3 => "*".into(),
            4 if low < high => format!("{low}-{high}"),
            5 => format!("{a},{b}"),
            6 => format!("*/{}", 2 + self.below(9)),
            7 if low < high => format!("{low}-{high}/{}", 2 + self.below(3)),
            _ => a.to_string(),
        }
    }

    fn expression(&mut self) -> String {
        let (minute, hour) = (self.field(0, 59), self.field(0, 23));
        // A day and a weekday together are one of either; steps of everything
        // are read otherwise there by croniter.
        let (day, month, weekday) = match self.below(3) {
            0 => (self.field(1, 31), self.field(1, 12), "*".into()),
            1 => ("*".into(), self.field(1, 12), self.field(0, 6)),
            _ => (
                (1 + self.below(28)).to_string(),
                "*".into(),
                self.below(7).to_string(),
            ),
        };
        format!("{minute} {hour} {day} {month} {weekday}")
    }
}

/// Whether a clock changes within a day of an instant.
fn near_a_change(at: Timestamp, zone: &TimeZone) -> bool {
    let day = SignedDuration::from_hours(24);
    let change = zone.following(at - day).next();
    change.is_some_and(|change| change.timestamp() <= at + day)
}

#[test]
fn times_agree_with_croniter_away_from_changes() {
    let test = "times_agree_with_croniter_away_from_changes";
    let Some(python) = installed(test, VARIABLE) else {
        return;
    };
    let mut croniter = Command::new(python)
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = croniter.stdin.take().unwrap();
    let mut answers = BufReader::new(croniter.stdout.take().unwrap()).lines();
    let mut dice = Dice(2026);
    let (mut compared, mut tried) = (0, 0);
    while tried < EXPRESSIONS {
        let (text, name) = (dice.expression(), ZONES[dice.below(8) as usize]);
        let Ok(expression) = Expression::parse(&text) else {
            continue;
        };
        tried += 1;
        let zone = zone(name).unwrap();
        let start = FIRST + dice.below(SPAN).cast_signed();
        writeln!(ask, "[{text:?}, {name:?}, {start}, {TIMES}]").unwrap();
        let line = answers.next().expect("croniter answers").unwrap();
        let theirs: Vec<i64> = serde_json::from_str(&line).unwrap();
        let mut ours = Vec::new();
        let mut at = Timestamp::from_second(start).unwrap();
        let until = *theirs.last().unwrap();
        while let Some(next) = expression
            .next_after(at, &zone)
            .filter(|t| t.as_second() <= until)
        {
            ours.push(next.as_second());
            at = next;
        }
        let same = |times: &[i64]| -> BTreeSet<i64> {
            let far = times
                .iter()
                .copied()
                .filter(|second| !near_a_change(Timestamp::from_second(*second).unwrap(), &zone));
            far.collect()
        };
        let (ours, theirs) = (same(&ours), same(&theirs));
        let differs = ours.symmetric_difference(&theirs).next();
        assert_eq!(
            differs.map(|s| Timestamp::from_second(*s).unwrap().to_zoned(zone.clone())),
            None,
            "{text} in {name} from {start}"
        );
        compared += theirs.len();
    }
    drop(ask);
    croniter.wait().unwrap();
    assert!(compared > EXPRESSIONS * TIMES / 2, "{compared}");
}

/// Every minute, by what the rules say of it and by nothing that the search
/// does.
fn walk(text: &str, zone: &TimeZone, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let fields: Vec<&str> = text.split(' ').collect();
    let has = |field: &str, number: i8| match field {
        "*" => true,
        list => list.split(',').any(|n| n.parse() == Ok(number)),
    };
    let (minute, hour) = (fields[0], fields[1]);
    let minute_long = SignedDuration::from_mins(1);
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for step in 0..minutes {
        let at = from + SignedDuration::from_mins(step);
        let local = zone.to_datetime(at);
        let named = has(minute, local.minute()) && has(hour, local.hour());
        if hour == "*" {
            found.extend(named.then_some(at));
            continue;
        }
        // Skipped times fall on the moment of the change.
        let mut passed = zone.to_datetime(at - minute_long);
        passed = passed.saturating_add(minute_long);
        while passed < local {
            let leapt = has(minute, passed.minute()) && has(hour, passed.hour());
            found.extend((leapt && seen.insert(passed)).then_some(at));
            passed = passed.saturating_add(minute_long);
        }
        found.extend((named && seen.insert(local)).then_some(at));
    }
    found.into_iter().collect()
}

#[test]
fn times_on_days_of_a_change_agree_with_a_walk() {
    let mut dice = Dice(7);
    for name in ZONES {
        let zone = zone(name).unwrap();
        let from = Timestamp::from_second(FIRST).unwrap();
        let until = Timestamp::from_second(FIRST + SPAN.cast_signed()).unwrap();
        let changes = zone.following(from).take(12);
        for change in changes.take_while(|change| change.timestamp() < until) {
            let from = change.timestamp() - SignedDuration::from_hours(30);
            for _ in 0..6 {
                let minute = format!("{},{}", dice.below(60), dice.below(60));
                let hour = match dice.below(3) {
                    0 => "*".into(),
                    // Where changes are.
                    1 => dice.below(4).to_string(),
                    _ => format!("{},{},{}", dice.below(4), dice.below(4), dice.below(24)),
                };
                let text = format!("{minute} {hour} * * *");
                let expression = Expression::parse(&text).unwrap();
                let want = walk(&text, &zone, from, 60 * 60);
                let mut at = from - SignedDuration::from_secs(1);
                for want in want {
                    let next = expression.next_after(at, &zone).unwrap();
                    assert_eq!(next, want, "{text} in {name}");
                    at = next;
                }
            }
        }
    }
}
