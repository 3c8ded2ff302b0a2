//! An agent is started, ended, and started again.

use super::*;

#[test]
fn identity_is_requested_three_times() {
    let mut driven = Driven::new();
    driven.on(Trigger::Start);
    driven.on(ready());
    assert_eq!(driven.on(ended(false, false)), [Act::Bootstrap]);
    assert_eq!(driven.after(180), [Act::Bootstrap]);
    driven.is(State::Initialization);
    driven.on(ended(false, false));
    driven.is(State::Failed);
    assert!(driven.told());
}

#[test]
fn dead_agent_restarts_three_times_and_keeps_its_mail() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Died("9".into())), [Act::Requeue(1)]);
    for pause in [1, 5, 25] {
        driven.is(State::Initialization);
        assert_eq!(driven.after(pause), [Act::Launch]);
        driven.on(Trigger::Died("9".into()));
    }
    driven.is(State::Failed);
    assert!(driven.told());
    assert_eq!(driven.on(Trigger::Start), [], "only `restart` leaves it");
    driven.on(Trigger::Restart);
    driven.is(State::Offline);
    assert_eq!(driven.on(Trigger::Stopped), [Act::Launch]);
}

#[test]
fn old_deaths_do_not_count() {
    let mut driven = Driven::active();
    for _ in 0..10 {
        driven.on(Trigger::Died("9".into()));
        assert_eq!(driven.after(25), [Act::Launch]);
        driven.now += RESTART_WINDOW_MS;
    }
}

#[test]
fn pause_stop_and_restart_work_in_every_state() {
    for mut driven in [Driven::idle(), Driven::active(), Driven::awaiting()] {
        driven.on(Trigger::Pause);
        assert_eq!(driven.on(Trigger::Offered(Offer::Letter(7))), []);
        assert!(driven.on(Trigger::Stop).contains(&Act::StopAgent));
        driven.on(Trigger::Stopped);
        driven.is(State::Offline);
        assert_eq!(driven.on(Trigger::Start), [Act::Launch]);
    }
}

#[test]
fn restarted_nexus_adopts_its_agents() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Recover), [Act::Launch]);
    assert_eq!(driven.on(ready()), [Act::SendAgain(1)]);
    driven.is(State::Active);
    let mut driven = Driven::idle();
    driven.on(Trigger::Recover);
    assert_eq!(driven.on(Trigger::Offered(Offer::Letter(1))), [], "not yet");
    assert_eq!(driven.on(ready()), []);
    driven.is(State::Idle);
    let mut driven = Driven::active();
    driven.on(Trigger::Recover);
    let acts = driven.on(Trigger::Failed(Failure::NotRunning("gone".into())));
    assert_eq!(acts, [Act::Requeue(1)]);
    assert_eq!(
        driven.after(0),
        [Act::Launch],
        "at once, since it did not crash"
    );
}

#[test]
fn recovered_agent_continues_with_its_step() {
    let mut verifying = Driven::noticed();
    verifying.on(ended(false, true));
    let mut compressing = Driven::awaiting();
    compressing.on(Trigger::Reply(None, Reply::Allow));
    for (mut driven, act) in [
        (Driven::noticed(), Act::SendAgain(102)),
        (verifying, Act::Verify),
        (compressing, Act::Compress),
    ] {
        assert_eq!(driven.on(Trigger::Recover), [Act::Launch]);
        assert_eq!(driven.on(ready()), [act]);
    }
}

#[test]
fn agents_recover_when_the_daemon_is_back() {
    let away = || Trigger::Failed(Failure::Unreachable("no daemon".into()));
    for mut driven in [Driven::idle(), Driven::active(), Driven::awaiting()] {
        driven.on(away());
        assert!(driven.told());
        for _ in 0..100 {
            driven.is(State::Initialization);
            assert_eq!(driven.after(10), [Act::Launch]);
            assert_eq!(driven.on(away()), [], "ADMIN is told once");
        }
        driven.after(10);
        assert_eq!(driven.on(ready()), [Act::Bootstrap]);
        driven.on(ended(true, false));
        driven.is(State::Idle);
        driven.on(away());
        assert!(driven.told(), "and again the next time");
    }
}

#[test]
fn restart_forgets_old_invalid_outputs() {
    let mut driven = Driven::idle();
    (0..3).for_each(|_| driven.agent.meters.turn(true));
    driven.agent.corrections = 3;
    driven.on(Trigger::Restart);
    driven.on(Trigger::Stopped);
    driven.on(ready());
    assert!(driven.agent.meters.form.is_empty());
    assert_eq!(driven.agent.corrections, 0);
}
