//! Booking of model calls (MODEL-7).

use crate::rig::*;
use crabtalk_domain::model::{Chunk, StopReason};
use crabtalk_domain::{AgentEvent, Usage};
use crabtalk_runtime::{RunRequest, Subscription};
use crabtalk_testkit::model::Step;
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;

fn used(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    Usage {
        prompt_tokens,
        completion_tokens,
        ..Usage::default()
    }
}

fn booked(rig: &Rig) -> Vec<String> {
    rig.ledger.booked.lock().expect("not poisoned").clone()
}

#[tokio::test]
async fn calls_are_booked_once_for_the_speaker() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "a"})).usage(used(10, 1)),
        Reply::text("done").usage(used(20, 2)),
        Reply::text("I am ada").usage(used(30, 3)),
        Reply::text("A summary of it.").usage(used(40, 4)),
    ]);
    rig.run("go").await;
    let mut guest = RunRequest::new(key(), "and you?");
    guest.guest = Some("ada".into());
    rig.send(guest).await;
    rig.compact().await;
    assert_eq!(
        booked(&rig),
        [
            "(crab, user) 1 crab scripted/scripted 10+1",
            "(crab, user) 1 crab scripted/scripted 20+2",
            "(crab, user) 2 ada scripted/scripted 30+3",
            "(crab, user) 2 crab scripted/scripted 40+4",
        ]
    );
}

#[tokio::test]
async fn spent_budgets_end_the_run_before_the_next_call() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "a"})),
        Reply::text("never asked for"),
    ]);
    *rig.ledger.closes_after.lock().expect("not poisoned") = Some(1);
    let events = rig.run("go").await;
    let last = events.last().map(String::as_str);
    assert_eq!(last, Some("end 402 crab has spent it all"));
    assert_eq!(rig.model.requests().len(), 1);
    assert_eq!(rig.tools.called().len(), 1);
    let refused = rig.runtime.compact(&key(), None).await;
    assert_eq!(refused.expect_err("refused").code(), 402);
    assert_eq!(rig.model.requests().len(), 1);
    assert_eq!(
        rig.lines(),
        [
            "run 1 start",
            "user: go",
            r#"assistant:  ["echo"]"#,
            "tool: a",
            "run 1 end 402"
        ]
    );
}

#[tokio::test]
async fn cancelled_answers_are_booked() {
    let rig = rig(vec![
        Reply::hang_after("half an answer").usage(used(10, 1)),
        Reply::cut("half").usage(used(20, 2)),
    ]);
    let mut run = rig.submit("go");
    read_until(&mut run, "half an answer").await;
    rig.runtime.kill(&key()).expect("in flight");
    read(run).await;
    rig.run("again").await;
    assert_eq!(
        booked(&rig),
        [
            "(crab, user) 1 crab scripted/scripted 10+1",
            "(crab, user) 2 crab scripted/scripted 20+2",
        ]
    );
}

/// A run's money, and its tokens without a price.
async fn cost(mut run: Subscription) -> (Option<f64>, u64) {
    loop {
        let next = run.next().await.expect("not refused").expect("an end");
        if let AgentEvent::End(end) = &next.event {
            return (end.cost.money, end.cost.unpriced_tokens);
        }
    }
}

#[tokio::test]
async fn end_has_the_cost_of_all_calls() {
    let catalog = with_crab(|crab| crab.compact_threshold = Some(1000));
    let model = ScriptedModel::new(vec![
        Reply::tool("echo", json!({"text": "a"})).usage(used(10, 1)),
        Reply::text("done").usage(used(10, 2)),
        Reply::hang_after("half an answer").usage(used(20, 4)),
        Reply::tool("echo", json!({"text": "b"})).usage(used(2000, 8)),
        Reply::text("A summary of it.").usage(used(10, 16)),
        Reply::text("done").usage(used(UNPRICED, 32)),
        Reply::text("free").usage(used(UNPRICED, 64)),
    ]);
    let rig = rig_on(model, MemoryStore::default(), catalog);
    assert_eq!(cost(rig.submit("go")).await, (Some(3.0), 0));
    let mut cancelled = rig.submit("again");
    read_until(&mut cancelled, "half an answer").await;
    rig.runtime.kill(&key()).expect("in flight");
    assert_eq!(cost(cancelled).await, (Some(4.0), 0));
    assert_eq!(
        cost(rig.submit("compacts")).await,
        (Some(24.0), UNPRICED + 32)
    );
    assert_eq!(cost(rig.submit("last")).await, (None, UNPRICED + 64));
    let ended = rig.ends.all().into_iter().map(|ended| {
        let total = ended.total.expect("no crash");
        assert_eq!(ended.outcome.usage, Some(total.usage));
        format!(
            "{} {} {} {}: {}+{} {:?}",
            ended.key,
            ended.outcome.run,
            ended.outcome.code,
            total.calls,
            total.usage.prompt_tokens,
            total.usage.completion_tokens,
            total.cost.money
        )
    });
    assert_eq!(
        ended.collect::<Vec<_>>(),
        [
            "(crab, user) 1 0 2: 20+3 Some(3.0)",
            "(crab, user) 2 499 1: 20+4 Some(4.0)",
            "(crab, user) 3 0 3: 2023+56 Some(24.0)",
            "(crab, user) 4 0 1: 13+64 None",
        ]
    );
}

#[tokio::test]
async fn missing_usage_is_booked_by_estimate() {
    let rig = rig(vec![Reply::Steps(vec![
        Step::Send(Chunk::Text("x".repeat(400))),
        Step::Send(Chunk::Stop(StopReason::Done)),
    ])]);
    rig.run(&"y".repeat(800)).await;
    let booked = booked(&rig);
    let (tokens, completion) = booked[0]
        .rsplit_once(' ')
        .expect("figures")
        .1
        .split_once('+')
        .expect("two");
    assert!(
        tokens.parse::<u64>().expect("a number") >= 200,
        "{booked:?}"
    );
    assert_eq!(completion, "100");
}

#[tokio::test]
async fn repeated_calls_end_the_run() {
    let model = ScriptedModel::answering(|_| Reply::tool("echo", json!({"text": "again"})));
    let rig = rig_on(model, MemoryStore::default(), catalog());
    let events = rig.run("go").await;
    let end = last(&events);
    assert!(
        end.starts_with("end 422 the agent called echo 5 times with the same arguments"),
        "{end}"
    );
    assert_eq!(rig.model.requests().len(), 5);
    assert_eq!(last(&rig.lines()), "run 1 end 422");
    rig.model_was_content();
}
