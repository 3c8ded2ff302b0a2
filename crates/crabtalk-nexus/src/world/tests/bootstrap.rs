//! An agent proves who it is before anything else reaches it.

use super::*;

#[test]
fn check_1_a_fresh_agent_gets_bootstrap() {
    let bench = Bench::new(TWO);
    assert_eq!(
        bench.got("A"),
        [
            "@NEXUS → @A [BOOTSTRAP]: @gov/context_compression_protocol.md completed for @A.md \
             agent - please reload all relevant agent context for continuation"
        ]
    );
}

#[test]
fn check_2_the_right_reply_idles_and_commits() {
    let mut bench = Bench::new(TWO);
    bench.confirms("A");
    bench.is("A", State::Idle);
    assert_eq!(bench.keys, ["commit A: identity confirmed"]);
}

#[test]
fn check_3_a_reply_under_another_name_is_tried_again_then_fails() {
    let mut bench = Bench::new(TWO);
    for _ in 0..3 {
        bench.is("A", State::Initialization);
        bench.says("A", "@B → @NEXUS [BOOTSTRAP]: Identity confirmed.");
    }
    bench.is("A", State::Failed);
    assert_eq!(bench.got("A").len(), 3);
    assert!(bench.inbox()[0].contains("did not prove its identity"));
}

#[test]
fn check_4_waiting_mail_is_delivered_verbatim_after_bootstrap() {
    let mut bench = Bench::new(TWO);
    let text = "@ADMIN → @A [HELLO]: first\n\n  second; -x";
    bench.send(text);
    assert_eq!(bench.got("A").len(), 1);
    bench.confirms("A");
    assert_eq!(bench.last("A"), text);
    bench.is("A", State::Active);
}
