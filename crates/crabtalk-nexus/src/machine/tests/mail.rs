//! Mail reaches an agent one at a time.

use super::*;

#[test]
fn idle_mail_is_sent_one_at_a_time_and_not_while_held() {
    let mut driven = Driven::idle();
    driven.on(Trigger::Held(true));
    assert_eq!(driven.on(Trigger::Offered(Offer::Letter(1))), []);
    driven.on(Trigger::Held(false));
    assert_eq!(
        driven.on(Trigger::Offered(Offer::Letter(1))),
        [Act::Send(1)]
    );
    driven.is(State::Active);
    assert_eq!(driven.on(Trigger::Offered(Offer::Letter(2))), []);
}

#[test]
fn idle_reflection_and_compression() {
    let mut driven = Driven::idle();
    assert_eq!(
        driven.on(Trigger::Offered(Offer::Reflection)),
        [Act::Reflect]
    );
    driven.is(State::Active);
    let mut driven = Driven::idle();
    let offer = Offer::Compression("why".into());
    assert_eq!(driven.on(Trigger::Offered(offer)), [Act::Notice]);
    driven.is(State::PreCompression);
}

#[test]
fn active_end_of_turn_idles() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(ended(false, false)), []);
    driven.is(State::Idle);
}

#[test]
fn active_bell_of_neither_is_recorded() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Bell), []);
    driven.is(State::Active);
    assert!(driven.agent.quiet.rang);
}

#[test]
fn busy_agent_gets_no_letter() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Routed), []);
    assert_eq!(driven.on(Trigger::Offered(Offer::Letter(2))), []);
    assert_eq!(driven.on(Trigger::Progress), []);
    driven.on(ended(false, false));
    assert_eq!(
        driven.on(Trigger::Offered(Offer::Letter(2))),
        [Act::Send(2)]
    );
}
