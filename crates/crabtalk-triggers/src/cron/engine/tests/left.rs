//! Runs that were left waiting when a daemon ended.

use super::*;
use crate::cron::books::Row;
use crate::cron::books::tests::{MemoryBooks, done};
use std::sync::Arc;

/// The next daemon starts a run that never began, once, and without counting a failure.
#[test]
fn runs_that_never_began_start_again() {
    let memory = Arc::new(MemoryBooks::default());
    let entries = || vec![entry(1, "0 9 * * *", |draft| draft.once = true)];
    let settings = Settings {
        at_once: 3,
        pause_after: 3,
    };
    let (mut books, loaded) = memory.open(at("2026-11-22T08:00:00Z"));
    let mut engine = Engine::new(loaded, settings);
    let lines = engine.load(entries(), at("2026-11-22T08:00:00Z"));
    done(books.append(&lines, |id| engine.account(id))).unwrap();
    let tick = engine.tick(at("2026-11-22T09:00:00Z"), Duration::from_secs(3600));
    done(books.append(&tick.lines, |id| engine.account(id))).unwrap();
    let first = &tick.fires[0];
    drop(books);

    // Two daemons that end before it begins, and one in which it does.
    for life in 0..2 {
        let now = at("2026-11-22T09:10:00Z");
        let (mut books, loaded) = memory.open(now);
        assert_eq!(loaded.interrupted.len(), 1, "{life}");
        assert_eq!(loaded.accounts[&1].failures, 1, "{life}");
        let fired = loaded.accounts[&1].last.clone().unwrap();
        let mut engine = Engine::new(loaded, settings);
        assert!(engine.load(entries(), now).is_empty());
        let (line, fire) = engine.begin_again(&fired).unwrap();
        assert!(engine.begin_again(&fired).is_none());
        assert_eq!(
            (fire.seq, fire.due, fire.at),
            (first.seq, first.due, first.at)
        );
        assert!(engine.is_running(1) && engine.spent().is_empty());
        assert_eq!(engine.entry(1).unwrap().1.failures, 0, "{life}");
        done(books.append(&[line], |id| engine.account(id))).unwrap();
        if life == 1 {
            let ended = Ended {
                outcome: Outcome::Ok,
                ..books_end(&fire)
            };
            let (lines, _) = engine.ended(ended);
            done(books.append(&lines, |id| engine.account(id))).unwrap();
            assert_eq!(engine.spent(), [1]);
        }
    }
    let (_, loaded) = memory.open(at("2026-11-22T09:20:00Z"));
    let account = &loaded.accounts[&1];
    assert_eq!((account.fired, account.failures), (1, 0));
    let rows = memory.rows();
    let [Row::Run(fired, Some(ended))] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((fired.seq, ended.outcome), (first.seq, Outcome::Ok));
}

#[test]
fn outdated_runs_do_not_start_again() {
    let now = at("2026-11-22T09:10:00Z");
    let world = |change: fn(&mut Draft)| {
        let settings = Settings {
            at_once: 3,
            pause_after: 3,
        };
        let mut engine = Engine::new(left_by(&[]), settings);
        engine.load(vec![entry(1, "0 9 * * *", change)], now);
        engine
    };
    assert!(world(|_| {}).begin_again(&left(4)).is_some());
    assert!(
        world(|_| {}).begin_again(&left(3)).is_none(),
        "not the last"
    );
    assert!(
        world(|draft| draft.paused = true)
            .begin_again(&left(4))
            .is_none()
    );
    let elsewhere = |draft: &mut Draft| draft.sender = "cron:other".into();
    assert!(world(elsewhere).begin_again(&left(4)).is_none());
    let mut goes = world(|_| {});
    goes.run_now(1, now).unwrap();
    assert!(goes.begin_again(&left(4)).is_none());
    let mut gone = world(|_| {});
    gone.load(Vec::new(), now);
    assert!(gone.begin_again(&left(4)).is_none());
    // One that is over, however it ended, does not run twice.
    for outcome in [Outcome::Ok, Outcome::Failed, Outcome::Killed] {
        let mut over = world(|_| {});
        let (_, fire) = over.begin_again(&left(4)).unwrap();
        over.ended(Ended {
            outcome,
            ..books_end(&fire)
        });
        assert!(over.begin_again(&left(4)).is_none(), "{outcome:?}");
    }
}

/// Nor where its next due time came already and waits for its turn.
#[test]
fn runs_that_never_began_yield_to_newer_ones() {
    let now = at("2026-11-22T09:00:00Z");
    let settings = Settings {
        at_once: 1,
        pause_after: 3,
    };
    let mut engine = Engine::new(left_by(&[]), settings);
    let entries = vec![plain(2, "0 9 * * *"), plain(1, "0 9 * * *")];
    engine.load(entries, at("2026-11-22T08:00:00Z"));
    engine.run_now(2, now).unwrap();
    assert!(engine.tick(now, Duration::from_secs(3600)).fires.is_empty());
    assert!(engine.begin_again(&left(4)).is_none());
}

/// A continued run counts like any other run, and for its entry alone
/// run of its conversation begins beside it.
#[test]
fn restarted_runs_count_once() {
    let failed = Outcome::Failed;
    let settings = Settings {
        at_once: 3,
        pause_after: 3,
    };
    let mut engine = Engine::new(left_by(&[failed]), settings);
    let beside = entry(2, "0 9 * * *", |draft| draft.sender = "cron:1".into());
    engine.load(
        vec![plain(1, "0 9 * * *"), beside],
        at("2026-11-22T08:00:00Z"),
    );
    let failures = |engine: &Engine| engine.entry(1).unwrap().1.failures;
    assert_eq!(
        failures(&engine),
        2,
        "one that failed, one that was cut off"
    );
    let (_, fire) = engine.begin_again(&left(4)).unwrap();
    assert_eq!(failures(&engine), 1);
    let tick = engine.tick(at("2026-11-22T09:00:00Z"), Duration::from_secs(3600));
    assert!(tick.fires.is_empty(), "its conversation is at work");
    let (_, pause) = engine.ended(books_end(&fire));
    assert_eq!(failures(&engine), 2);
    assert!(!pause);
    let tick = engine.tick(at("2026-11-22T09:00:01Z"), Duration::from_secs(3601));
    assert_eq!(tick.fires.len(), 1, "now it is free");
}

/// A run of the first entry.
fn left(seq: u64) -> Fired {
    Fired {
        id: 1,
        seq,
        due: None,
        at: at("2026-11-22T07:00:00Z"),
        late: false,
        once: false,
        agent: "crab".into(),
        sender: "cron:1".into(),
        words: "look".into(),
    }
}

/// The state of a daemon whose predecessor ended before the first entry's run 4 began,
/// behind runs that came out so.
fn left_by(before: &[Outcome]) -> Loaded {
    let mut account = Account::default();
    let settings = Settings {
        at_once: 3,
        pause_after: 3,
    };
    let mut first = Engine::new(Loaded::default(), settings);
    let known = first.load(vec![plain(1, "0 9 * * *")], at("2026-11-22T06:00:00Z"));
    known.iter().for_each(|line| account.take(line));
    let runs = before.iter().chain([&Outcome::Interrupted]);
    for (seq, outcome) in (4 - before.len() as u64..).zip(runs) {
        account.take(&Line::Fired(left(seq)));
        account.take(&Line::Ended(Ended {
            seq,
            outcome: *outcome,
            ..books_end(&Fire {
                seq,
                due: None,
                at: at("2026-11-22T07:00:00Z"),
                entry: Arc::new(plain(1, "0 9 * * *")),
            })
        }));
    }
    Loaded {
        accounts: [(1, account)].into(),
        last_id: 1,
        last_seq: 4,
        ..Loaded::default()
    }
}

fn books_end(fire: &Fire) -> Ended {
    Ended {
        id: fire.entry.id,
        seq: fire.seq,
        at: fire.at,
        outcome: Outcome::Failed,
        code: 0,
        error: String::new(),
        ms: 0,
        usage: Usage::default(),
        run: None,
        refused: Vec::new(),
        unstarted: false,
    }
}
