//! Compression has phases, each of which can fail.

use super::*;

#[test]
fn pre_compression_timeout_reminds_once_then_tells_admin() {
    let mut driven = Driven::noticed();
    driven.on(ended(false, false));
    assert_eq!(driven.after(600), [Act::Remind]);
    driven.on(ended(false, false));
    driven.after(300);
    assert!(driven.told());
    driven.is(State::Idle);
}

#[test]
fn prompts_while_consolidating_lead_back_to_it() {
    let mut driven = Driven::noticed();
    driven.on(Trigger::Prompted(prompt("p"), Some(Reply::Allow)));
    driven.is(State::Approval);
    driven.on(Trigger::Pressed("p".into(), true));
    driven.is(State::PreCompression);
    assert_eq!(driven.on(ended(false, true)), [Act::Verify]);
}

#[test]
fn cancelled_compression_does_not_run() {
    for mut driven in [Driven::awaiting(), Driven::noticed()] {
        assert_eq!(driven.on(Trigger::Cancel), [Act::CalledOff]);
        assert_eq!(driven.on(Trigger::Reply(None, Reply::Allow)), []);
        driven.on(ended(false, true));
        driven.is(State::Idle);
    }
}

#[test]
fn failed_compression_leaves_the_agent_working() {
    let mut driven = Driven::awaiting();
    driven.on(Trigger::Reply(None, Reply::Allow));
    driven.on(Trigger::Compressed(Err("no".into())));
    driven.is(State::Idle);
    assert!(driven.told());
}

#[test]
fn compress_waits_for_the_turn() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Compress), []);
    assert!(driven.agent.compress_wanted);
    let mut driven = Driven::idle();
    assert_eq!(driven.on(Trigger::Compress), [Act::Notice]);
}

#[test]
fn readiness_refused_too_often_ends_the_compression() {
    let mut driven = Driven::noticed();
    let refused = || Trigger::Verified(Err("a.md is not committed".into()));
    for _ in 0..3 {
        assert_eq!(driven.on(ended(false, true)), [Act::Verify]);
        assert!(matches!(driven.on(refused()), [Act::NotReady(_)]));
    }
    assert_eq!(driven.on(ended(false, true)), [Act::Verify]);
    driven.on(refused());
    assert!(driven.told());
    driven.is(State::Idle);
    assert_eq!(driven.agent.no_compression_before, driven.now + 3_600_000);
}

#[test]
fn compression_is_not_due_again_at_once() {
    let mut driven = Driven::awaiting();
    driven.on(Trigger::Reply(None, Reply::Allow));
    driven.on(Trigger::Compressed(Ok("s2".into())));
    driven.on(ended(true, false));
    driven.is(State::Idle);
    assert_eq!(driven.agent.no_compression_before, driven.now + 600_000);
}

#[test]
fn unordered_compaction_leads_to_a_proof_of_identity() {
    let mut driven = Driven::active();
    let acts = driven.on(Trigger::Compacted);
    assert!(matches!(acts, [Act::Checkpoint(_)]), "{acts:?}");
    driven.is(State::Active);
    assert_eq!(driven.on(ended(false, false)), [Act::Bootstrap]);
    driven.on(ended(true, false));
    driven.is(State::Idle);
    let mut driven = Driven::idle();
    let acts = driven.on(Trigger::Compacted);
    assert!(
        matches!(acts, [Act::Checkpoint(_), Act::Bootstrap]),
        "{acts:?}"
    );
}

#[test]
fn compression_without_approval_ends_after_an_hour() {
    let mut driven = Driven::awaiting();
    assert_eq!(driven.after(3599), []);
    driven.is(State::AwaitAdmin);
    let acts = driven.after(1);
    assert!(matches!(acts, [Act::CalledOff, Act::Tell(_)]), "{acts:?}");
    driven.is(State::Idle);
}
