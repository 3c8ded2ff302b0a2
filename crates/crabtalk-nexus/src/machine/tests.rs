//! Every row of the table, then walks.

use super::*;
use crate::agent::{Flight, Standing};
use proptest::prelude::*;

const NOW: Ms = 1_000_000;

/// An agent, driven by triggers in order.
struct Driven {
    agent: Agent,
    now: Ms,
    times: Times,
    letters: u64,
    acts: Vec<Act>,
}

impl Driven {
    fn new() -> Self {
        Self {
            agent: Agent::new(NOW),
            now: NOW,
            times: Times::default(),
            letters: 100,
            acts: Vec::new(),
        }
    }

    fn idle() -> Self {
        let mut driven = Self::new();
        driven.on(Trigger::Start);
        driven.on(ready());
        driven.on(ended(true, false));
        driven.is(State::Idle);
        driven
    }

    fn active() -> Self {
        let mut driven = Self::idle();
        driven.on(Trigger::Offered(Offer::Letter(1)));
        driven.on(Trigger::Seen(1));
        driven.is(State::Active);
        driven
    }

    fn approval(verdict: Verdict) -> Self {
        let mut driven = Self::active();
        driven.on(Trigger::Prompted(prompt("p1"), verdict));
        driven.is(State::Approval);
        driven
    }

    fn noticed() -> Self {
        let mut driven = Self::idle();
        driven.on(Trigger::Offered(Offer::Compression("66 %".into())));
        driven.is(State::PreCompression);
        driven
    }

    fn awaiting() -> Self {
        let mut driven = Self::noticed();
        driven.on(ended(false, true));
        driven.on(Trigger::Verified(Ok(())));
        driven.is(State::AwaitAdmin);
        driven
    }

    fn on(&mut self, trigger: Trigger) -> &[Act] {
        self.acts = self.agent.on(self.now, trigger, &self.times);
        for act in &self.acts {
            // What whoever carries acts out does with letters of NEXUS.
            if matches!(
                act,
                Act::Bootstrap | Act::Reflect | Act::Notice | Act::Remind | Act::NotReady(_)
            ) {
                self.letters += 1;
                self.agent.flight = Some(Flight {
                    letter: self.letters,
                    seen: false,
                });
            }
        }
        &self.acts
    }

    fn after(&mut self, secs: u64) -> &[Act] {
        self.now += secs * 1000;
        self.on(Trigger::Due)
    }

    #[track_caller]
    fn is(&self, state: State) {
        assert_eq!(self.agent.state, state, "{:?}", self.acts);
    }

    fn told(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Tell(_)))
    }
}

fn ready() -> Trigger {
    Trigger::Ready {
        session: "s1".into(),
        busy: false,
    }
}

fn ended(identity: bool, ready: bool) -> Trigger {
    Trigger::Ended(Ending { identity, ready })
}

fn prompt(id: &str) -> Prompt {
    Prompt {
        id: id.into(),
        tool: "bash".into(),
        subject: "cargo test".into(),
        ..Prompt::default()
    }
}

fn found(digest: &str) -> Trigger {
    Trigger::Probed(Finding {
        alive: true,
        digest: digest.into(),
        ..Finding::default()
    })
}

#[test]
fn offline_start_launches_and_bootstraps_when_ready() {
    for start in [Trigger::Start, Trigger::Resume] {
        let mut driven = Driven::new();
        assert_eq!(driven.on(start), [Act::Launch]);
        driven.is(State::Initialization);
        assert_eq!(driven.on(ready()), [Act::Bootstrap]);
        driven.is(State::Initialization);
    }
}

#[test]
fn initialization_right_identity_checkpoints_and_idles() {
    let mut driven = Driven::new();
    driven.on(Trigger::Start);
    driven.on(ready());
    let acts = driven.on(ended(true, false));
    assert!(matches!(acts, [Act::Checkpoint(_)]), "{acts:?}");
    driven.is(State::Idle);
}

#[test]
fn initialization_wrong_identity_or_timeout_bootstraps_twice_again_then_fails() {
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
fn check_5_a_busy_agent_gets_no_key_when_mail_arrives() {
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

#[test]
fn check_6_an_allowed_prompt_is_pressed_exactly_once() {
    let mut driven = Driven::active();
    let asked = Trigger::Prompted(prompt("p1"), Verdict::Allow);
    assert_eq!(driven.on(asked.clone()), [Act::Allow(prompt("p1"))]);
    assert_eq!(driven.on(asked), []);
    assert_eq!(driven.on(Trigger::Approve(None)), []);
    assert_eq!(driven.on(Trigger::Held(false)), []);
    assert_eq!(driven.on(Trigger::Pressed("p1".into(), true)), []);
    driven.is(State::Active);
}

#[test]
fn check_7_a_denied_command_is_refused() {
    let mut driven = Driven::active();
    let asked = Trigger::Prompted(prompt("p1"), Verdict::Deny("no".into()));
    assert_eq!(driven.on(asked), [Act::Deny(prompt("p1"), "no".into())]);
    driven.on(Trigger::Pressed("p1".into(), true));
    driven.is(State::Active);
}

#[test]
fn check_8_without_a_rule_admin_is_asked_and_no_key_pressed() {
    let mut driven = Driven::approval(Verdict::Ask);
    assert_eq!(driven.acts, [Act::AskAdmin(prompt("p1"))]);
    let approve = Trigger::Approve(Some("another".into()));
    assert_eq!(driven.on(approve), []);
    assert_eq!(
        driven.on(Trigger::Approve(None)),
        [Act::Allow(prompt("p1"))]
    );
    let mut driven = Driven::approval(Verdict::Ask);
    let deny = Trigger::Deny(Some("p1".into()), "wait".into());
    assert_eq!(driven.on(deny), [Act::Deny(prompt("p1"), "wait".into())]);
}

#[test]
fn approval_a_prompt_that_is_gone_is_looked_at_again() {
    let mut driven = Driven::approval(Verdict::Allow);
    assert_eq!(
        driven.on(Trigger::Pressed("p1".into(), false)),
        [Act::Probe]
    );
    driven.is(State::Active);
    let mut driven = Driven::approval(Verdict::Ask);
    driven.on(Trigger::PromptGone("p1".into()));
    driven.is(State::Active);
    assert_eq!(driven.on(Trigger::Approve(None)), [], "nothing waits");
}

#[test]
fn late_word_of_a_prompt_that_is_over_is_no_prompt() {
    let asked = || Trigger::Prompted(prompt("p1"), Verdict::Allow);
    // Its turn ended, it was answered, it went away: then a bell names it.
    for over in [
        ended(false, false),
        Trigger::Pressed("p1".into(), true),
        Trigger::PromptGone("p1".into()),
    ] {
        let mut driven = Driven::approval(Verdict::Allow);
        driven.on(over);
        let state = driven.agent.state;
        assert_eq!(driven.on(asked()), []);
        driven.is(state);
    }
    // One that did not hold still waits, and is answered then.
    let mut driven = Driven::approval(Verdict::Allow);
    driven.on(Trigger::Pressed("p1".into(), false));
    assert_eq!(driven.on(asked()), [Act::Allow(prompt("p1"))]);
}

#[test]
fn approval_keys_wait_while_the_window_is_held() {
    let mut driven = Driven::active();
    driven.on(Trigger::Held(true));
    let asked = Trigger::Prompted(prompt("p1"), Verdict::Allow);
    assert_eq!(driven.on(asked), []);
    assert_eq!(driven.on(Trigger::Held(false)), [Act::Allow(prompt("p1"))]);
}

#[test]
fn approval_several_prompts_wait_at_once() {
    let mut driven = Driven::approval(Verdict::Ask);
    let second = Trigger::Prompted(prompt("p2"), Verdict::Allow);
    assert_eq!(driven.on(second), [Act::Allow(prompt("p2"))]);
    driven.on(Trigger::Pressed("p2".into(), true));
    driven.is(State::Approval);
    driven.on(Trigger::PromptGone("p1".into()));
    driven.is(State::Active);
}

#[test]
fn check_15_silence_without_a_bell_is_probed_and_no_more() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Silent), [Act::Probe]);
    assert_eq!(driven.on(found("same")), []);
    assert_eq!(driven.on(Trigger::Silent), [Act::Probe]);
    assert_eq!(driven.on(found("same")), []);
    driven.is(State::Active);
}

#[test]
fn check_16_silence_after_a_bell_with_nothing_moving_is_stuck() {
    let mut driven = Driven::active();
    driven.on(Trigger::Bell);
    assert_eq!(driven.on(Trigger::Silent), [Act::Probe]);
    assert_eq!(driven.on(found("same")), []);
    assert_eq!(driven.after(5), [Act::Probe], "a second look");
    driven.on(found("same"));
    driven.is(State::Stuck);
    assert!(driven.told());
    assert!(!driven.agent.monitor);
    assert_eq!(driven.on(Trigger::Silent), [], "it is not looked after");
}

#[test]
fn check_17_a_message_switches_monitoring_on_again() {
    let mut driven = Driven::active();
    driven.on(Trigger::Monitor(false));
    assert_eq!(driven.on(Trigger::Silent), []);
    driven.on(Trigger::Routed);
    assert!(driven.agent.monitor);
    assert_eq!(driven.on(Trigger::Silent), [Act::Probe]);
}

#[test]
fn stuck_is_left_by_whatever_moves() {
    let stuck = || {
        let mut driven = Driven::active();
        driven.on(Trigger::Bell);
        driven.on(Trigger::Silent);
        driven.on(found("same"));
        driven.after(5);
        driven.on(found("same"));
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
    let acts = driven.on(Trigger::Prompted(prompt("p"), Verdict::Allow));
    assert_eq!(acts, [Act::Allow(prompt("p"))]);
    let mut driven = stuck();
    assert_eq!(driven.on(Trigger::Cancel), [Act::CancelTurn]);
    let mut driven = stuck();
    assert_eq!(driven.on(Trigger::Routed), [Act::Probe]);
}

#[test]
fn a_forgotten_draft_gets_one_enter() {
    let mut driven = Driven::active();
    driven.on(Trigger::Bell);
    driven.on(Trigger::Silent);
    let draft = || {
        Trigger::Probed(Finding {
            alive: true,
            digest: "same".into(),
            draft: Some("@ADMIN".into()),
            ..Finding::default()
        })
    };
    assert_eq!(driven.on(draft()), [Act::Nudge("@ADMIN".into())]);
    driven.after(5);
    driven.on(draft());
    driven.after(5);
    driven.on(draft());
    driven.is(State::Stuck);
}

#[test]
fn nothing_moving_for_long_is_stuck_without_a_bell() {
    let mut driven = Driven::active();
    for _ in 0..=SAME_PROBES {
        driven.is(State::Active);
        assert_eq!(driven.after(120), [Act::Probe]);
        driven.on(found("same"));
    }
    driven.is(State::Stuck);
}

#[test]
fn check_27_a_dead_agent_is_started_again_three_times_and_its_mail_kept() {
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
fn check_31_what_is_missing_is_told_at_once() {
    let mut driven = Driven::new();
    driven.on(Trigger::Start);
    driven.on(Trigger::Impossible("there is no tmux".into()));
    driven.is(State::Failed);
    assert!(driven.told());
}

#[test]
fn deaths_long_ago_do_not_count() {
    let mut driven = Driven::active();
    for _ in 0..10 {
        driven.on(Trigger::Died("9".into()));
        assert_eq!(driven.after(25), [Act::Launch]);
        driven.now += RESTART_WINDOW_MS;
    }
}

#[test]
fn pre_compression_ready_is_verified_then_waits_for_admin() {
    let mut driven = Driven::noticed();
    assert_eq!(driven.on(ended(false, true)), [Act::Verify]);
    driven.is(State::PreCompression);
    driven.on(Trigger::Verified(Ok(())));
    driven.is(State::AwaitAdmin);
    assert!(driven.told());
}

#[test]
fn check_28_ready_with_a_dirty_tree_is_refused() {
    let mut driven = Driven::noticed();
    driven.on(ended(false, true));
    let acts = driven.on(Trigger::Verified(Err("a.md is not committed".into())));
    assert_eq!(acts, [Act::NotReady("a.md is not committed".into())]);
    driven.is(State::PreCompression);
    assert_eq!(
        driven.on(Trigger::Approve(None)),
        [],
        "there is nothing to approve"
    );
}

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
    driven.on(Trigger::Prompted(prompt("p"), Verdict::Allow));
    driven.is(State::Approval);
    driven.on(Trigger::Pressed("p".into(), true));
    driven.is(State::PreCompression);
    assert_eq!(driven.on(ended(false, true)), [Act::Verify]);
}

#[test]
fn await_admin_approve_compresses_and_proves_identity_again() {
    let mut driven = Driven::awaiting();
    let acts = driven.on(Trigger::Approve(None));
    assert!(
        matches!(acts, [Act::Checkpoint(_), Act::Compress]),
        "{acts:?}"
    );
    let acts = driven.on(Trigger::Compressed(Ok("s2".into())));
    assert!(
        matches!(acts, [Act::Checkpoint(_), Act::Bootstrap]),
        "{acts:?}"
    );
    driven.is(State::Initialization);
    driven.on(ended(true, false));
    driven.is(State::Idle);
    assert_eq!(driven.agent.plan, None);
}

#[test]
fn check_29_admin_cancels_and_nothing_is_compressed() {
    for mut driven in [Driven::awaiting(), Driven::noticed()] {
        assert_eq!(driven.on(Trigger::Cancel), [Act::CalledOff]);
        assert_eq!(driven.on(Trigger::Approve(None)), []);
        driven.on(ended(false, true));
        driven.is(State::Idle);
    }
}

#[test]
fn a_compression_that_fails_leaves_the_agent_working() {
    let mut driven = Driven::awaiting();
    driven.on(Trigger::Approve(None));
    driven.on(Trigger::Compressed(Err("no".into())));
    driven.is(State::Idle);
    assert!(driven.told());
}

#[test]
fn compress_waits_for_the_end_of_the_turn_unless_forced() {
    let mut driven = Driven::active();
    assert_eq!(driven.on(Trigger::Compress { forced: false }), []);
    assert!(driven.agent.compress_wanted);
    assert_eq!(
        driven.on(Trigger::Compress { forced: true }),
        [Act::CancelTurn]
    );
    let mut driven = Driven::idle();
    assert_eq!(
        driven.on(Trigger::Compress { forced: false }),
        [Act::Notice]
    );
}

#[test]
fn pause_stop_and_restart_are_obeyed_anywhere() {
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
fn a_supervisor_that_comes_back_finds_its_agents() {
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
    let acts = driven.on(Trigger::LaunchFailed("gone".into()));
    assert_eq!(acts, [Act::Requeue(1)]);
    assert_eq!(
        driven.after(0),
        [Act::Launch],
        "at once: it is no crash loop"
    );
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only keys are looked at")]
fn keys_have_reasons(
    before: &Agent,
    after: &Agent,
    acts: &[Act],
    asked: Option<&str>,
    drafted: bool,
) {
    for act in acts {
        match act {
            Act::Allow(prompt)
            | Act::AllowAlways(prompt)
            | Act::Answer(prompt, _)
            | Act::Deny(prompt, _) => {
                let known = before.waiting.iter().find(|w| w.prompt.id == prompt.id);
                let lives = known.map_or(asked == Some(&prompt.id), |waiting| {
                    waiting.standing != Standing::Pressed
                });
                assert!(lives && !after.held, "{before:?}");
            }
            Act::Nudge(_) => assert!(drafted && !after.held),
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
    prop_oneof![
        Just(Trigger::Start),
        Just(Trigger::Stop),
        Just(Trigger::Restart),
        Just(Trigger::Pause),
        Just(Trigger::Resume),
        any::<bool>().prop_map(Trigger::Monitor),
        any::<bool>().prop_map(|forced| Trigger::Compress { forced }),
        prop::option::of(id()).prop_map(Trigger::Approve),
        prop::option::of(id()).prop_map(Trigger::ApproveAlways),
        prop::option::of(id()).prop_map(|id| Trigger::Answer(id, "tabs".into())),
        prop::option::of(id()).prop_map(|id| Trigger::Deny(id, "no".into())),
        Just(Trigger::Cancel),
        Just(Trigger::Recover),
        text().prop_map(Trigger::LaunchFailed),
        text().prop_map(Trigger::Impossible),
        any::<bool>().prop_map(|busy| Trigger::Ready {
            session: "s".into(),
            busy
        }),
        text().prop_map(Trigger::Session),
        Just(Trigger::TurnBegan),
        letter().prop_map(Trigger::Seen),
        Just(Trigger::Progress),
        Just(Trigger::Bell),
        (id(), 0..3_u8).prop_map(|(id, verdict)| Trigger::Prompted(
            prompt(&id),
            match verdict {
                0 => Verdict::Allow,
                1 => Verdict::Deny("no".into()),
                _ => Verdict::Ask,
            }
        )),
        id().prop_map(Trigger::PromptGone),
        (any::<bool>(), any::<bool>()).prop_map(|(a, b)| ended(a, b)),
        Just(Trigger::Silent),
        any::<bool>().prop_map(Trigger::Held),
        text().prop_map(Trigger::Died),
        Just(Trigger::Stopped),
        (id(), any::<bool>()).prop_map(|(id, live)| Trigger::Pressed(id, live)),
        id().prop_map(Trigger::PressFailed),
        (any::<bool>(), 0..2_u8, any::<bool>(), any::<bool>()).prop_map(
            |(alive, digest, draft, over)| {
                Trigger::Probed(Finding {
                    alive,
                    digest: digest.to_string(),
                    draft: draft.then(|| "draft".into()),
                    over,
                })
            }
        ),
        any::<bool>().prop_map(|ok| Trigger::Verified(if ok { Ok(()) } else { Err("x".into()) })),
        any::<bool>().prop_map(|ok| Trigger::Compressed(if ok {
            Ok("s".into())
        } else {
            Err("x".into())
        })),
        letter().prop_map(Trigger::Undeliverable),
        Just(Trigger::Routed),
        letter().prop_map(|id| Trigger::Offered(Offer::Letter(id))),
        Just(Trigger::Offered(Offer::Reflection)),
        Just(Trigger::Offered(Offer::Compression("why".into()))),
        Just(Trigger::Due),
    ]
}

/// A world in which everything works leads any agent to IDLE.
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
                match waiting.standing {
                    Standing::Asked => Trigger::Approve(None),
                    Standing::Pressed => Trigger::Pressed(waiting.prompt.id.clone(), true),
                    Standing::Allow | Standing::Always | Standing::Answer | Standing::Deny => {
                        Trigger::Held(false)
                    }
                }
            }
            (_, Step::Verifying) => Trigger::Verified(Ok(())),
            (_, Step::Awaiting) if driven.agent.busy => ended(true, true),
            (_, Step::Awaiting) => Trigger::Approve(None),
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
    fn walks_press_nothing_without_a_live_prompt_and_end_nowhere(
        triggers in prop::collection::vec((any_trigger(), 0_u64..400), 1..60),
    ) {
        let mut driven = Driven::new();
        for (trigger, secs) in triggers {
            let before = driven.agent.clone();
            driven.now += secs * 1000;
            let drafted = matches!(&trigger, Trigger::Probed(f) if f.draft.is_some());
            let asked = if let Trigger::Prompted(prompt, _) = &trigger {
                Some(prompt.id.clone())
            } else {
                None
            };
            let acts = driven.on(trigger).to_vec();
            keys_have_reasons(&before, &driven.agent, &acts, asked.as_deref(), drafted);
            if driven.agent.state == State::Approval {
                prop_assert!(!driven.agent.waiting.is_empty(), "{:?}", driven.agent);
            }
        }
        leads_home(driven);
    }
}
