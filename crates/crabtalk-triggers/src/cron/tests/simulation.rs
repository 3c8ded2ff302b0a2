//! A month with restarts at random instants: every due time is in the books
//! exactly once.

use crate::cron::account::{Ended, Line, Outcome, Usage};
use crate::cron::books::tests::{MemoryBooks, done};
use crate::cron::entry::{CronEntry, Draft};
use crate::cron::{Books, Engine, Fire, Row, Settings, zone};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A generator that gives the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

fn entries() -> Vec<CronEntry> {
    let berlin = zone("Europe/Berlin").unwrap();
    let schedules = [
        ("17 */2 * * *", "", ""),
        ("30 2 * * *", "once", ""),
        ("0 9 * * 1-5", "skip", ""),
        ("45 * * * *", "once", "22:00"),
        ("@weekly", "once", ""),
        ("*/40 6-8 * * *", "skip", ""),
        ("0 0 1 * *", "once", ""),
    ];
    let now = start();
    let entry = |(at, (schedule, missed, quiet)): (usize, &(&str, &str, &str))| {
        let draft = Draft {
            id: at as u64 + 1,
            schedule: (*schedule).into(),
            missed: (*missed).into(),
            quiet_start: (*quiet).into(),
            quiet_end: "06:00".into(),
            // Two share a conversation.
            sender: format!("cron:{}", at % 6),
            content: "look".into(),
            ..Draft::default()
        };
        draft.check("crab", &berlin, now).unwrap()
    };
    schedules.iter().enumerate().map(entry).collect()
}

/// The month in which clocks change.
fn start() -> Timestamp {
    "2026-10-10T12:34:56Z".parse().unwrap()
}

struct World {
    dice: Dice,
    now: Timestamp,
    passed: Duration,
    engine: Engine,
    books: Books,
    going: Vec<(Timestamp, Fire)>,
}

impl World {
    fn open(memory: &Arc<MemoryBooks>, seed: u64) -> Self {
        let now = start();
        let (engine, books) = restart(memory, now);
        Self {
            dice: Dice(seed),
            now,
            passed: Duration::ZERO,
            engine,
            books,
            going: Vec::new(),
        }
    }

    /// Looks, and does what comes of it, unless it is killed in between.
    /// Answers when to look again; `None` if it was killed.
    fn look(&mut self) -> Option<Duration> {
        let over: Vec<Fire> = {
            let now = self.now;
            let (over, going) = self.going.drain(..).partition(|(end, _)| *end <= now);
            self.going = going;
            let over: Vec<(Timestamp, Fire)> = over;
            over.into_iter().map(|(_, fire)| fire).collect()
        };
        for fire in over {
            let (lines, _) = self.engine.ended(self.end(&fire));
            if self.dice.one_in(60) {
                return None;
            }
            self.write(&lines);
        }
        let tick = self.engine.tick(self.now, self.passed);
        if self.dice.one_in(200) {
            return None;
        }
        self.write(&tick.lines);
        if self.dice.one_in(200) {
            return None;
        }
        for fire in tick.fires {
            // Some take longer than their period.
            let minutes = 1 + self.dice.below(20) * self.dice.below(10);
            let end = self.now + SignedDuration::from_mins(minutes.cast_signed());
            self.going.push((end, fire));
        }
        Some(tick.wake.unwrap_or(Duration::from_secs(30)))
    }

    fn write(&mut self, lines: &[Line]) {
        let engine = &self.engine;
        done(self.books.append(lines, |id| engine.account(id))).unwrap();
    }

    fn end(&self, fire: &Fire) -> Ended {
        Ended {
            id: fire.entry.id,
            seq: fire.seq,
            at: self.now,
            outcome: Outcome::Ok,
            code: 0,
            error: String::new(),
            ms: 1,
            usage: Usage::default(),
            run: None,
            refused: Vec::new(),
            unstarted: false,
        }
    }

    fn month(&mut self, memory: &Arc<MemoryBooks>) {
        let end = start() + SignedDuration::from_hours(30 * 24);
        while self.now < end {
            // Ticks of half a minute would be many: nothing happens in most.
            let wake = self.look();
            let wait = match wake {
                Some(wake) => wake.max(Duration::from_secs(20 + self.dice.below(300))),
                None => Duration::ZERO,
            };
            self.go(wait);
            if wake.is_none() || self.dice.one_in(300) {
                // Killed, and down for some time.
                self.going.clear();
                let down = self.dice.below(60) * self.dice.below(600);
                self.go(Duration::from_secs(down));
                (self.engine, self.books) = restart(memory, self.now);
            } else if self.dice.one_in(200) {
                // The clock is put right, by less than a day.
                let back = self.dice.below(7200).cast_signed();
                self.now -= SignedDuration::from_secs(back);
            } else if self.dice.one_in(200) {
                // It sleeps.
                let asleep = self.dice.below(40_000).cast_signed();
                self.now += SignedDuration::from_secs(asleep);
            }
        }
    }

    fn go(&mut self, wait: Duration) {
        self.now += SignedDuration::try_from(wait).unwrap();
        self.passed += wait;
    }
}

fn restart(memory: &Arc<MemoryBooks>, now: Timestamp) -> (Engine, Books) {
    let (mut books, loaded) = memory.open(now);
    let settings = Settings {
        at_once: 2,
        pause_after: 0,
    };
    let mut engine = Engine::new(loaded, settings);
    let lines: Vec<Line> = engine.load(entries(), now);
    done(books.append(&lines, |id| engine.account(id))).unwrap();
    (engine, books)
}

#[test]
fn random_restarts_decide_every_due_time_once() {
    for seed in 1..=6_u64 {
        let memory = Arc::new(MemoryBooks::default());
        let mut world = World::open(&memory, seed);
        world.month(&memory);
        let rows = memory.rows();
        let mut told: BTreeMap<(u64, Timestamp), u32> = BTreeMap::new();
        let mut last: BTreeMap<u64, Timestamp> = BTreeMap::new();
        for row in rows {
            let (id, first, to) = match row {
                Row::Run(fired, _) => (fired.id, fired.due.unwrap(), fired.due.unwrap()),
                Row::Skipped(skipped) => (skipped.id, skipped.due, skipped.last),
            };
            let entry = &entries()[id as usize - 1];
            let mut due = first;
            loop {
                *told.entry((id, due)).or_default() += 1;
                if due >= to {
                    break;
                }
                due = entry.when.next_after(due, &entry.zone).unwrap();
            }
            let known = last.entry(id).or_insert(to);
            *known = (*known).max(to);
        }
        for entry in entries() {
            let mut due = start();
            let Some(last) = last.get(&entry.id) else {
                continue;
            };
            while due < *last {
                due = entry.when.next_after(due, &entry.zone).unwrap();
                let count = told.remove(&(entry.id, due)).unwrap_or_default();
                assert_eq!(count, 1, "seed {seed}: {due} of entry {}", entry.id);
            }
            // The remaining times are waiting or have just come.
            let next = entry.when.next_after(*last, &entry.zone).unwrap();
            let lag = world.now.duration_since(next).as_hours();
            assert!(
                lag < 24,
                "seed {seed}: {next} of entry {} is open",
                entry.id
            );
        }
        assert!(told.is_empty(), "seed {seed}: {told:?}");
    }
}
