mod left;

use super::*;
use crate::cron::account::{Skipped, Usage};
use crate::cron::entry::Draft;
use jiff::tz::TimeZone;

/// A machine with two clocks.
struct World {
    engine: Engine,
    now: Timestamp,
    passed: Duration,
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn entry(id: u64, schedule: &str, change: impl FnOnce(&mut Draft)) -> entry::CronEntry {
    let mut draft = Draft {
        id,
        schedule: schedule.into(),
        content: "look".into(),
        sender: format!("cron:{id}"),
        ..Draft::default()
    };
    change(&mut draft);
    draft
        .check("crab", &TimeZone::UTC, at("2026-11-22T08:00:00Z"))
        .unwrap()
}

fn plain(id: u64, schedule: &str) -> entry::CronEntry {
    entry(id, schedule, |_| {})
}

impl World {
    fn new(now: &str, entries: Vec<entry::CronEntry>) -> Self {
        let settings = Settings {
            at_once: 3,
            pause_after: 3,
        };
        let mut engine = Engine::new(Loaded::default(), settings);
        engine.load(entries, at(now));
        Self {
            engine,
            now: at(now),
            passed: Duration::from_secs(5),
        }
    }

    /// Time passes, by both clocks.
    fn pass(&mut self, seconds: u64) -> Tick {
        self.now += SignedDuration::from_secs(seconds.cast_signed());
        self.passed += Duration::from_secs(seconds);
        self.look()
    }

    /// The wall clock is set.
    fn set(&mut self, now: &str) -> Tick {
        self.now = at(now);
        self.passed += Duration::from_millis(10);
        self.look()
    }

    fn look(&mut self) -> Tick {
        self.engine.tick(self.now, self.passed)
    }

    fn end(&mut self, fire: &Fire, outcome: Outcome) -> (Vec<Line>, bool) {
        self.end_of(fire, outcome, false)
    }

    fn end_of(&mut self, fire: &Fire, outcome: Outcome, unstarted: bool) -> (Vec<Line>, bool) {
        self.engine.ended(Ended {
            id: fire.entry.id,
            seq: fire.seq,
            at: self.now,
            outcome,
            code: 0,
            error: String::new(),
            ms: 1,
            usage: Usage::default(),
            run: None,
            refused: Vec::new(),
            unstarted,
        })
    }
}

fn dues(tick: &Tick) -> Vec<String> {
    tick.fires
        .iter()
        .map(|fire| {
            format!(
                "{} {}",
                fire.entry.id,
                fire.due.unwrap().strftime("%d %H:%M")
            )
        })
        .collect()
}

fn skips(tick: &Tick) -> Vec<String> {
    let show = |Skipped {
                    due,
                    last,
                    count,
                    why,
                    ..
                }: &Skipped| {
        let (due, last) = (due.strftime("%d %H:%M"), last.strftime("%d %H:%M"));
        format!("{due}..{last} {count} {}", why.as_str())
    };
    let mut skips = Vec::new();
    for line in &tick.lines {
        if let Line::Skipped(skipped) = line {
            skips.push(show(skipped));
        }
    }
    skips
}

#[test]
fn due_entries_fire_once() {
    let mut world = World::new("2026-11-22T08:59:50Z", vec![plain(1, "0 9 * * *")]);
    assert_eq!(world.look().wake, Some(Duration::from_secs(10)));
    let tick = world.pass(10);
    assert_eq!(dues(&tick), ["1 22 09:00"]);
    assert_eq!(tick.wake, Some(MAX_NAP));
    assert!(world.look().fires.is_empty());
    assert!(world.pass(86_399).fires.is_empty(), "its run goes on");
    world.end(&tick.fires[0], Outcome::Ok);
    let tick = world.pass(1);
    assert_eq!(dues(&tick), ["1 23 09:00"]);
}

#[test]
fn no_entries_need_no_timer() {
    assert_eq!(World::new("2026-11-22T08:00:00Z", vec![]).look().wake, None);
    let paused = entry(1, "* * * * *", |draft| draft.paused = true);
    assert_eq!(
        World::new("2026-11-22T08:00:00Z", vec![paused]).look().wake,
        None
    );
}

#[test]
fn missed_times_follow_the_policy_of_the_entry() {
    let once = entry(2, "0 * * * *", |draft| draft.missed = "once".into());
    let mut world = World::new("2026-11-22T08:30:00Z", vec![plain(1, "0 * * * *"), once]);
    world.look();
    let tick = world.set("2026-11-22T12:30:00Z");
    assert_eq!(tick.jump.unwrap().as_hours(), 3, "and some");
    assert_eq!(
        skips(&tick),
        ["22 09:00..22 12:00 4 missed", "22 09:00..22 11:00 3 missed"]
    );
    assert_eq!(dues(&tick), ["2 22 12:00"]);
    assert!(matches!(
        tick.lines.last(),
        Some(Line::Fired(Fired { late: true, .. }))
    ));
    // A due time that is decided within a minute is in time.
    let tick = world.set("2026-11-22T13:00:45Z");
    assert_eq!(dues(&tick), ["1 22 13:00"]);
    assert_eq!(skips(&tick), ["22 13:00..22 13:00 1 overlap"]);
}

#[test]
fn small_steps_back_fire_nothing_twice() {
    for back in [
        "2026-11-22T08:59:30Z",
        "2026-11-22T03:00:00Z",
        "2026-11-21T10:00:00Z",
    ] {
        let entries = vec![plain(1, "0 9 * * *"), plain(2, "*/5 * * * *")];
        let mut world = World::new("2026-11-22T08:58:00Z", entries);
        world.look();
        let tick = world.pass(120);
        assert_eq!(dues(&tick), ["1 22 09:00", "2 22 09:00"]);
        tick.fires
            .iter()
            .for_each(|fire| drop(world.end(fire, Outcome::Ok)));
        let tick = world.set(back);
        assert!(tick.jump.unwrap().is_negative() && tick.fires.is_empty());
        // The same times again, and then new ones.
        let mut fired = Vec::new();
        while world.now < at("2026-11-22T09:05:30Z") {
            let tick = world.pass(30);
            fired.extend(dues(&tick));
            tick.fires
                .iter()
                .for_each(|fire| drop(world.end(fire, Outcome::Ok)));
        }
        assert_eq!(fired, ["2 22 09:05"], "{back}");
    }
}

#[test]
fn large_steps_back_silence_no_entry() {
    let mut world = World::new("2026-11-22T08:59:30Z", vec![plain(1, "0 9 * * *")]);
    let tick = world.pass(30);
    world.end(&tick.fires[0], Outcome::Ok);
    assert!(world.set("2025-11-22T08:59:30Z").fires.is_empty());
    let tick = world.pass(30);
    assert_eq!(tick.fires[0].due, Some(at("2025-11-22T09:00:00Z")));
    world.end(&tick.fires[0], Outcome::Ok);
    // And back where it was: nothing twice, and no year is made up for.
    let tick = world.set("2026-11-22T09:10:00Z");
    assert_eq!((dues(&tick), skips(&tick)), (vec![], vec![]));
    let tick = world.set("2026-11-23T09:00:10Z");
    assert_eq!(dues(&tick), ["1 23 09:00"]);
}

/// A machine without a battery-backed clock starts in 1970, or where it stopped.
#[test]
fn restart_with_a_wrong_clock_makes_up_for_missed_times_only() {
    let once = || entry(1, "0 9 * * *", |draft| draft.missed = "once".into());
    let mut world = World::new("2026-11-22T08:59:30Z", vec![once()]);
    let tick = world.pass(30);
    world.end(&tick.fires[0], Outcome::Ok);
    let mut known = Loaded::default();
    known
        .accounts
        .extend(world.engine.account(1).cloned().map(|it| (1, it)));
    let settings = world.engine.settings;
    world.engine = Engine::new(known, settings);
    world.engine.load(vec![once()], Timestamp::UNIX_EPOCH);
    assert!(world.set("1970-01-01T00:00:00Z").fires.is_empty());
    let tick = world.set("2026-11-24T10:00:00Z");
    assert_eq!(skips(&tick), ["23 09:00..23 09:00 1 missed"]);
    assert_eq!(dues(&tick), ["1 24 09:00"]);
}

#[test]
fn quiet_hours_skip_due_times() {
    let quiet = |draft: &mut Draft| {
        draft.quiet_start = "23:00".into();
        draft.quiet_end = "07:00".into();
        draft.missed = "once".into();
    };
    let mut world = World::new("2026-11-22T22:30:00Z", vec![entry(1, "0 * * * *", quiet)]);
    world.look();
    assert_eq!(skips(&world.pass(1800)), ["22 23:00..22 23:00 1 quiet"]);
    // Missed before, and it is quiet now.
    let tick = world.set("2026-11-23T06:30:00Z");
    assert_eq!(
        skips(&tick),
        ["23 00:00..23 05:00 6 missed", "23 06:00..23 06:00 1 quiet"]
    );
    assert_eq!(dues(&world.pass(1800)), ["1 23 07:00"]);
}

#[test]
fn queued_run_is_skipped_when_quiet_hours_begin() {
    let quiet = |draft: &mut Draft| {
        draft.quiet_start = "23:00".into();
        draft.quiet_end = "07:00".into();
    };
    let mut entries: Vec<_> = (2..=4).map(|id| plain(id, "58 22 * * *")).collect();
    entries.push(entry(1, "59 22 * * *", quiet));
    let mut world = World::new("2026-11-22T22:57:30Z", entries);
    world.look();
    let busy = world.pass(30).fires;
    assert_eq!(busy.len(), 3, "there is no more room");
    assert!(world.pass(60).fires.is_empty());
    world.pass(120);
    world.end(&busy[0], Outcome::Ok);
    let tick = world.look();
    assert!(tick.fires.iter().all(|fire| fire.entry.id != 1), "{tick:?}");
    let account = world.engine.entry(1).unwrap().1;
    assert_eq!((account.fired, account.skipped), (0, 1));
}

#[test]
fn times_during_the_last_run_are_skipped() {
    let mut world = World::new("2026-11-22T08:59:59Z", vec![plain(1, "* * * * *")]);
    let first = world.pass(1);
    assert_eq!(skips(&world.pass(60)), ["22 09:01..22 09:01 1 overlap"]);
    assert_eq!(skips(&world.pass(300)), ["22 09:02..22 09:06 5 overlap"]);
    world.end(&first.fires[0], Outcome::Ok);
    assert_eq!(dues(&world.pass(60)), ["1 22 09:07"]);
    let (_, account, _) = world.engine.entry(1).unwrap();
    assert_eq!((account.fired, account.skipped), (2, 6));
}

#[test]
fn many_due_entries_run_in_order_within_the_limits() {
    let mut entries: Vec<_> = (1..=10).map(|id| plain(id, "0 0 * * *")).collect();
    entries.push(entry(11, "59 23 * * *", |draft| {
        draft.sender = "cron:1".into()
    }));
    let mut world = World::new("2026-11-22T23:58:59Z", entries);
    world.look();
    let mut begun = world.pass(1);
    assert_eq!(dues(&begun), ["11 22 23:59"]);
    let early = begun.fires.remove(0);
    let tick = world.pass(60);
    // Entry 1 waits for the conversation.
    assert_eq!(dues(&tick), ["2 23 00:00", "3 23 00:00"]);
    world.end(&early, Outcome::Ok);
    let mut going = tick.fires;
    let mut order = Vec::new();
    let tick = world.look();
    going.extend(tick.fires);
    while let Some(fire) = going.pop() {
        order.push(fire.entry.id);
        world.end(&fire, Outcome::Ok);
        let tick = world.pass(600);
        assert!(skips(&tick).is_empty(), "late by waiting is not missed");
        going.extend(tick.fires);
        assert!(going.len() <= 3);
    }
    order.sort_unstable();
    assert_eq!(order, (1..=10).collect::<Vec<_>>());
}

#[test]
fn once_is_used_up_by_a_started_run() {
    let once = entry(1, "* * * * *", |draft| {
        draft.once = true;
        draft.quiet_start = "08:00".into();
        draft.quiet_end = "09:01".into();
    });
    let mut world = World::new("2026-11-22T08:59:59Z", vec![once]);
    assert_eq!(skips(&world.pass(1)).len(), 1);
    let tick = world.pass(60);
    let fire = &tick.fires[0];
    // It never began: the next time counts.
    world.end_of(fire, Outcome::Failed, true);
    let tick = world.pass(60);
    assert_eq!(dues(&tick), ["1 22 09:02"]);
    world.end(&tick.fires[0], Outcome::Ok);
    assert!(world.pass(600).fires.is_empty());
    assert_eq!(world.look().wake, None);
}

#[test]
fn repeated_failures_pause_an_entry() {
    let mut world = World::new("2026-11-22T08:59:59Z", vec![plain(1, "* * * * *")]);
    let mut paused = Vec::new();
    let mut tick = world.pass(1);
    for outcome in [
        Outcome::Failed,
        Outcome::Failed,
        Outcome::Ok,
        Outcome::Failed,
        Outcome::Killed,
        Outcome::Interrupted,
        Outcome::Failed,
    ] {
        let (lines, pause) = world.end(&tick.fires[0], outcome);
        assert_eq!(lines.len(), if pause { 2 } else { 1 });
        paused.push(pause);
        tick = world.pass(60);
    }
    assert_eq!(paused, [false, false, false, false, false, false, true]);
    assert!(tick.fires.is_empty());
    world.engine.pause(1, false, world.now);
    let tick = world.pass(60);
    assert!(
        skips(&tick).is_empty(),
        "times while paused are not made up for"
    );
    assert_eq!(tick.fires.len(), 1);
    assert!(!world.end(&tick.fires[0], Outcome::Failed).1);
}

#[test]
fn runs_on_demand_leave_the_schedule_alone() {
    let once = entry(1, "0 9 * * *", |draft| draft.once = true);
    let mut world = World::new("2026-11-22T08:00:00Z", vec![once]);
    let (lines, fire) = world.engine.run_now(1, world.now).unwrap();
    assert!(matches!(
        &lines[..],
        [Line::Fired(Fired {
            due: None,
            once: false,
            ..
        })]
    ));
    assert!(world.engine.run_now(1, world.now).is_none(), "it goes on");
    assert!(world.engine.run_now(2, world.now).is_none());
    world.end(&fire, Outcome::Ok);
    assert_eq!(dues(&world.pass(3600)), ["1 22 09:00"]);
}

#[test]
fn changed_and_removed_entries_finish_their_run() {
    let mut world = World::new("2026-11-22T08:59:59Z", vec![plain(1, "0 9 * * *")]);
    let tick = world.pass(1);
    let lines = world.engine.load(vec![plain(1, "30 9 * * *")], world.now);
    assert!(matches!(&lines[..], [Line::Known { id: 1, .. }]));
    assert_eq!(world.engine.load(vec![], world.now), []);
    let (lines, _) = world.end(&tick.fires[0], Outcome::Ok);
    assert!(matches!(
        &lines[..],
        [Line::Ended(_), Line::Removed { id: 1 }]
    ));
    assert_eq!(world.engine.next_id(), 2, "numbers are never given again");
    assert_eq!(world.look().wake, None);
}
