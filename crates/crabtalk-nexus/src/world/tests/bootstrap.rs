//! An agent confirms its identity before it gets other messages.

use super::*;

#[test]
fn fresh_agent_gets_bootstrap() {
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
fn confirmed_identity_idles_and_commits() {
    let mut bench = Bench::new(TWO);
    bench.confirms("A");
    bench.is("A", State::Idle);
    assert_eq!(bench.keys, ["commit A: identity confirmed"]);
}

#[test]
fn reply_under_another_name_fails_after_retries() {
    let mut bench = Bench::new(TWO);
    for _ in 0..3 {
        bench.is("A", State::Initialization);
        bench.says("A", "@B → @NEXUS [BOOTSTRAP]: Identity confirmed.");
    }
    bench.is("A", State::Failed);
    assert_eq!(bench.got("A").len(), 3);
    assert!(bench.inbox()[0].contains("no startup confirmation"));
}

#[test]
fn waiting_mail_is_delivered_after_bootstrap() {
    let mut bench = Bench::new(TWO);
    let text = "@ADMIN → @A [HELLO]: first\n\n  second; -x";
    bench.send(text);
    assert_eq!(bench.got("A").len(), 1);
    bench.confirms("A");
    assert_eq!(bench.last("A"), text);
    bench.is("A", State::Active);
}
