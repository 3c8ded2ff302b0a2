//! Silence is investigated, and a hanging agent is reported.

use super::*;

#[test]
fn any_activity_leaves_stuck() {
    let stuck = || {
        let mut driven = Driven::active();
        for _ in 0..=SAME_PROBES {
            driven.after(120);
            driven.on(found("same"));
        }
        driven.is(State::Stuck);
        driven
    };
    let mut driven = stuck();
    driven.on(Trigger::Progress);
    driven.is(State::Active);
    let mut driven = stuck();
    driven.on(ended(false, false));
    driven.is(State::Idle);
    let mut driven = stuck();
    let acts = driven.on(Trigger::Prompted(prompt("p"), Some(Reply::Allow)));
    assert_eq!(acts, [Act::Reply(prompt("p"), Reply::Allow)]);
    let mut driven = stuck();
    assert_eq!(driven.on(Trigger::Cancel), [Act::CancelTurn]);
    let mut driven = stuck();
    assert_eq!(driven.on(Trigger::Routed), [Act::Probe]);
}

#[test]
fn message_that_does_not_arrive_is_sent_again_once() {
    let mut driven = Driven::idle();
    driven.on(Trigger::Offered(Offer::Letter(1)));
    driven.after(120);
    driven.on(found("same"));
    driven.after(120);
    assert_eq!(driven.on(found("same")), [Act::SendAgain(1)]);
    for _ in 1..SAME_PROBES {
        assert_eq!(driven.after(120), [Act::Probe]);
        driven.on(found("same"));
    }
    driven.is(State::Stuck);
}

#[test]
fn long_silence_is_stuck() {
    let mut driven = Driven::active();
    for _ in 0..=SAME_PROBES {
        driven.is(State::Active);
        assert_eq!(driven.after(120), [Act::Probe]);
        driven.on(found("same"));
    }
    driven.is(State::Stuck);
    assert!(driven.told());
    assert!(!driven.agent.monitor);
    assert_eq!(driven.after(120), [], "it is not looked after");
}
