//! A prompt is answered once, for a reason, or waits for a person.

use super::*;

#[test]
fn allowed_prompt_is_answered_once() {
    let mut driven = Driven::active();
    let asked = Trigger::Prompted(prompt("p1"), Some(Reply::Allow));
    assert_eq!(
        driven.on(asked.clone()),
        [Act::Reply(prompt("p1"), Reply::Allow)]
    );
    assert_eq!(driven.on(asked), []);
    assert_eq!(driven.on(Trigger::Reply(None, Reply::Allow)), []);
    assert_eq!(driven.on(Trigger::Held(false)), []);
    assert_eq!(driven.on(Trigger::Pressed("p1".into(), true)), []);
    driven.is(State::Active);
}

#[test]
fn repeated_denials_in_one_turn_reach_admin() {
    let mut driven = Driven::active();
    let deny = |driven: &mut Driven, n: u32| {
        let asked = Trigger::Prompted(prompt(&format!("p{n}")), Some(Reply::Deny("no".into())));
        let act = driven.on(asked).first().cloned();
        driven.on(Trigger::Pressed(format!("p{n}"), true));
        act
    };
    for n in 0..DENIALS {
        assert!(
            matches!(deny(&mut driven, n), Some(Act::Reply(_, Reply::Deny(_)))),
            "{n}"
        );
    }
    let asked = Trigger::Prompted(prompt("again"), Some(Reply::Deny("no".into())));
    assert_eq!(driven.on(asked), [Act::AskAdmin(prompt("again"))]);
    driven.on(ended(false, false));
    driven.on(Trigger::Offered(Offer::Letter(2)));
    assert!(matches!(
        deny(&mut driven, 99),
        Some(Act::Reply(_, Reply::Deny(_)))
    ));
}

#[test]
fn prompt_without_a_rule_goes_to_admin() {
    let mut driven = Driven::approval(None);
    assert_eq!(driven.acts, [Act::AskAdmin(prompt("p1"))]);
    let approve = Trigger::Reply(Some("another".into()), Reply::Allow);
    assert_eq!(driven.on(approve), []);
    assert_eq!(
        driven.on(Trigger::Reply(None, Reply::Allow)),
        [Act::Reply(prompt("p1"), Reply::Allow)]
    );
    let mut driven = Driven::approval(None);
    let deny = Trigger::Reply(Some("p1".into()), Reply::Deny("wait".into()));
    assert_eq!(
        driven.on(deny),
        [Act::Reply(prompt("p1"), Reply::Deny("wait".into()))]
    );
}

#[test]
fn stale_prompt_leads_to_a_probe() {
    let mut driven = Driven::approval(Some(Reply::Allow));
    assert_eq!(
        driven.on(Trigger::Pressed("p1".into(), false)),
        [Act::Probe]
    );
    driven.is(State::Active);
    let mut driven = Driven::approval(None);
    driven.on(Trigger::PromptGone("p1".into()));
    driven.is(State::Active);
    assert_eq!(
        driven.on(Trigger::Reply(None, Reply::Allow)),
        [],
        "nothing waits"
    );
}

#[test]
fn late_event_of_a_closed_prompt_is_ignored() {
    let asked = || Trigger::Prompted(prompt("p1"), Some(Reply::Allow));
    // A prompt closes in three ways; a late report of it is then ignored.
    for over in [
        ended(false, false),
        Trigger::Pressed("p1".into(), true),
        Trigger::PromptGone("p1".into()),
    ] {
        let mut driven = Driven::approval(Some(Reply::Allow));
        driven.on(over);
        let state = driven.agent.state;
        assert_eq!(driven.on(asked()), []);
        driven.is(state);
    }
    // After a stale answer the prompt is open again, and its next report is answered.
    let mut driven = Driven::approval(Some(Reply::Allow));
    driven.on(Trigger::Pressed("p1".into(), false));
    assert_eq!(driven.on(asked()), [Act::Reply(prompt("p1"), Reply::Allow)]);
}

#[test]
fn approval_keys_wait_while_the_window_is_held() {
    let mut driven = Driven::active();
    driven.on(Trigger::Held(true));
    let asked = Trigger::Prompted(prompt("p1"), Some(Reply::Allow));
    assert_eq!(driven.on(asked), []);
    assert_eq!(
        driven.on(Trigger::Held(false)),
        [Act::Reply(prompt("p1"), Reply::Allow)]
    );
}

#[test]
fn approval_several_prompts_wait_at_once() {
    let mut driven = Driven::approval(None);
    let second = Trigger::Prompted(prompt("p2"), Some(Reply::Allow));
    assert_eq!(driven.on(second), [Act::Reply(prompt("p2"), Reply::Allow)]);
    driven.on(Trigger::Pressed("p2".into(), true));
    driven.is(State::Approval);
    driven.on(Trigger::PromptGone("p1".into()));
    driven.is(State::Active);
}
