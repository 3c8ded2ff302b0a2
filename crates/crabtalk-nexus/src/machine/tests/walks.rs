//! With any triggers in any order, keys are sent only for a reason, and every state can be
//! left.

use super::*;
use crate::agent::Standing;
use proptest::prelude::*;

#[expect(clippy::wildcard_enum_match_arm, reason = "only keys are checked")]
fn keys_have_reasons(before: &Agent, after: &Agent, acts: &[Act], asked: Option<&str>) {
    for act in acts {
        match act {
            Act::Reply(prompt, _) => {
                let known = before.waiting.iter().find(|w| w.prompt.id == prompt.id);
                let lives = known.map_or(asked == Some(&prompt.id), |waiting| {
                    waiting.standing != Standing::Pressed
                });
                assert!(lives && !after.held, "{before:?}");
            }
            Act::SendAgain(_) => assert!(
                after
                    .flight
                    .is_some_and(|flight| !flight.seen || before.adopting)
            ),
            Act::Send(_) | Act::Reflect => assert!(before.is_free()),
            Act::Compress => {
                assert!(after.plan.as_ref().is_some_and(|plan| plan.approved) && !after.busy);
            }
            _ => {}
        }
    }
}

fn any_trigger() -> impl Strategy<Value = Trigger> {
    let id = || prop::sample::select(vec!["p1", "p2", "p3"]).prop_map(str::to_owned);
    let letter = || 100_u64..104;
    let text = || Just("x".to_owned());
    let reply = || {
        let (no, tabs) = (Reply::Deny("no".into()), Reply::Text("tabs".into()));
        prop::sample::select(vec![Reply::Allow, Reply::Always, no, tabs])
    };
    prop_oneof![
        Just(Trigger::Start),
        Just(Trigger::Stop),
        Just(Trigger::Restart),
        Just(Trigger::Pause),
        Just(Trigger::Resume),
        Just(Trigger::Compress),
        (prop::option::of(id()), reply()).prop_map(|(id, reply)| Trigger::Reply(id, reply)),
        Just(Trigger::Cancel),
        Just(Trigger::Recover),
        text().prop_map(|why| Trigger::Failed(Failure::Failed(why))),
        text().prop_map(|why| Trigger::Failed(Failure::Missing(why))),
        text().prop_map(|why| Trigger::Failed(Failure::Unreachable(why))),
        any::<bool>().prop_map(|busy| Trigger::Ready {
            session: "s".into(),
            busy
        }),
        text().prop_map(Trigger::Session),
        Just(Trigger::TurnBegan),
        letter().prop_map(Trigger::Seen),
        Just(Trigger::Progress),
        (id(), prop::option::of(reply()))
            .prop_map(|(id, verdict)| Trigger::Prompted(prompt(&id), verdict)),
        id().prop_map(Trigger::PromptGone),
        (any::<bool>(), any::<bool>()).prop_map(|(a, b)| ended(a, b)),
        any::<bool>().prop_map(Trigger::Held),
        text().prop_map(Trigger::Died),
        Just(Trigger::Stopped),
        (id(), any::<bool>()).prop_map(|(id, live)| Trigger::Pressed(id, live)),
        id().prop_map(Trigger::PressFailed),
        (any::<bool>(), 0..2_u8).prop_map(|(alive, digest)| Trigger::Probed {
            alive,
            digest: digest.to_string(),
        }),
        any::<bool>().prop_map(|ok| Trigger::Verified(if ok { Ok(()) } else { Err("x".into()) })),
        any::<bool>().prop_map(|ok| Trigger::Compressed(if ok {
            Ok("s".into())
        } else {
            Err("x".into())
        })),
        Just(Trigger::Compacted),
        letter().prop_map(Trigger::Undeliverable),
        Just(Trigger::Routed),
        letter().prop_map(|id| Trigger::Offered(Offer::Letter(id))),
        Just(Trigger::Offered(Offer::Reflection)),
        Just(Trigger::Offered(Offer::Compression("why".into()))),
        Just(Trigger::Due),
    ]
}

/// If all calls succeed, any agent reaches IDLE.
fn leads_home(mut driven: Driven) {
    driven.agent.paused = false;
    driven.on(Trigger::Held(false));
    for _ in 0..60 {
        if driven.agent.is_free() {
            return;
        }
        let trigger = match (driven.agent.state, driven.agent.step) {
            (State::Failed, _) => Trigger::Restart,
            (State::Offline, Step::Stopping) => Trigger::Stopped,
            (State::Offline, _) => Trigger::Start,
            (_, Step::Launching) => ready(),
            _ if driven.agent.adopting => ready(),
            (_, Step::Backoff) => {
                driven.now = driven.agent.deadline.expect("a pause ends");
                Trigger::Due
            }
            (State::Approval, _) => {
                let waiting = &driven.agent.waiting[0];
                match &waiting.standing {
                    Standing::Asked => Trigger::Reply(None, Reply::Allow),
                    Standing::Pressed => Trigger::Pressed(waiting.prompt.id.clone(), true),
                    Standing::Decided(_) => Trigger::Held(false),
                }
            }
            (_, Step::Verifying) => Trigger::Verified(Ok(())),
            (_, Step::Awaiting) if driven.agent.busy => ended(true, true),
            (_, Step::Awaiting) => Trigger::Reply(None, Reply::Allow),
            (_, Step::Compressing) => Trigger::Compressed(Ok("s".into())),
            _ => ended(true, true),
        };
        driven.on(trigger);
    }
    panic!("no way out of {:?}", driven.agent);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]
    #[test]
    fn random_walks_keep_the_invariants(
        triggers in prop::collection::vec((any_trigger(), 0_u64..400), 1..60),
    ) {
        let mut driven = Driven::new();
        for (trigger, secs) in triggers {
            let before = driven.agent.clone();
            driven.now += secs * 1000;
            let asked = if let Trigger::Prompted(prompt, _) = &trigger {
                Some(prompt.id.clone())
            } else {
                None
            };
            let acts = driven.on(trigger).to_vec();
            keys_have_reasons(&before, &driven.agent, &acts, asked.as_deref());
            if driven.agent.state == State::Approval {
                prop_assert!(!driven.agent.waiting.is_empty(), "{:?}", driven.agent);
            }
        }
        leads_home(driven);
    }
}
