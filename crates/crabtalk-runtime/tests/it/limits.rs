//! What one answer may be (MODEL-9).

use crate::rig::*;
use crabtalk_domain::model::{Chunk, StopReason};
use crabtalk_runtime::Limits;
use crabtalk_testkit::model::Step;
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::time::Duration;

fn rig_with(limits: Limits, replies: Vec<Reply>) -> Rig {
    let mut catalog = catalog();
    catalog.limits = limits;
    rig_on(ScriptedModel::new(replies), MemoryStore::default(), catalog)
}

fn of_bytes(answer_bytes: usize) -> Limits {
    Limits {
        answer_bytes,
        ..Limits::default()
    }
}

/// The end of a run, and the messages that are kept.
async fn ended(rig: &Rig) -> (String, Vec<String>) {
    let events = rig.run("go").await;
    (events.last().expect("an end").clone(), rig.lines())
}

#[tokio::test]
async fn answers_beyond_the_byte_limit_are_dropped() {
    let piece = "word ".repeat(20);
    let endless = || Reply::pieces(vec![piece.clone(); 11]);
    let rig = rig_with(of_bytes(1000), vec![endless(), Reply::text("in short")]);
    let (end, lines) = ended(&rig).await;
    assert_eq!(
        end,
        "end 422 scripted sent more than 1000 bytes in one answer, the limit of \
         limits.answer_bytes; the answer was stopped and discarded"
    );
    assert_eq!(lines, ["run 1 start", "user: go", "run 1 end 422"]);
    // The conversation goes on.
    let events = rig.run("shorter, please").await;
    assert_eq!(last(&events), "end 0");
}

#[tokio::test]
async fn byte_limit_counts_text_reasoning_and_arguments() {
    let third = "x".repeat(400);
    let thought = || Step::Send(Chunk::Thinking(third.clone()));
    let said = || Step::Send(Chunk::Text(third.clone()));
    let called = || Step::Call {
        name: "echo".into(),
        arguments: json!({ "text": third }).to_string(),
    };
    let stop = || Step::Send(Chunk::Stop(StopReason::ToolCalls));
    let rig = rig_with(
        of_bytes(1000),
        vec![
            Reply::Steps(vec![thought(), called(), stop()]),
            Reply::Steps(vec![thought(), said(), called(), stop()]),
        ],
    );
    let (end, _) = ended(&rig).await;
    assert!(
        end.starts_with("end 422 scripted sent more than 1000 bytes"),
        "{end}"
    );
    assert_eq!(rig.tools.called().len(), 1);
}

/// The provider's own limit: what was said is kept, and that it is not whole is
/// told.
#[tokio::test]
async fn truncated_answers_are_kept_with_a_notice() {
    let cut = Reply::Steps(vec![
        Step::Send(Chunk::Text("half of".into())),
        Step::Send(Chunk::Stop(StopReason::Length)),
    ]);
    let rig = rig_with(Limits::default(), vec![cut]);
    let events = rig.run("go").await;
    let told: Vec<&String> = events.iter().filter(|e| e.contains("go on")).collect();
    assert_eq!(
        told,
        ["notice the answer reached scripted's output limit; say \"go on\" to continue"]
    );
    assert_eq!(last(&events), "end 0");
    assert!(rig.lines().iter().any(|line| line.contains("half of")));
}

#[tokio::test]
async fn too_many_calls_run_none() {
    let limits = Limits {
        answer_calls: 3,
        ..Limits::default()
    };
    let calls = |count| Reply::tools(vec![("echo", json!({})); count]);
    let rig = rig_with(limits, vec![calls(3), calls(4)]);
    let (end, lines) = ended(&rig).await;
    assert_eq!(
        end,
        "end 422 scripted made more than 3 tool calls in one answer, the limit of \
         limits.answer_calls; the answer was stopped and discarded"
    );
    assert_eq!(rig.tools.called().len(), 3);
    assert_eq!(last(&lines), "run 1 end 422");
}

#[tokio::test]
async fn sparse_call_indexes_cost_no_memory() {
    let far = Step::Send(Chunk::ToolCallStart {
        index: u32::MAX - 1,
        id: "far".into(),
        name: "echo".into(),
    });
    let rig = rig_with(Limits::default(), vec![Reply::Steps(vec![far])]);
    let (end, _) = ended(&rig).await;
    assert!(end.contains("limits.answer_calls"), "{end}");
}

#[tokio::test]
async fn pieces_of_reasoning_are_bounded() {
    let proof = |n: usize| Step::Send(Chunk::ThinkingSignature(n.to_string()));
    let rig = rig_with(
        Limits::default(),
        vec![Reply::Steps((0..2000).map(proof).collect())],
    );
    let (end, _) = ended(&rig).await;
    assert!(
        end.starts_with("end 422 scripted sent more than 1024 pieces of reasoning"),
        "{end}"
    );
}

#[tokio::test(start_paused = true)]
async fn answers_beyond_the_time_limit_end_the_run() {
    let limits = Limits {
        answer_time: Duration::from_secs(60),
        ..Limits::default()
    };
    let drip = (0..100).flat_map(|_| {
        [
            Step::Send(Chunk::Text("drip ".into())),
            Step::Pause(Duration::from_secs(1)),
        ]
    });
    let rig = rig_with(limits, vec![Reply::Steps(drip.collect())]);
    let (end, lines) = ended(&rig).await;
    assert_eq!(
        end,
        "end 504 the answer took longer than 60s, the limit of limits.answer_secs; it was \
         stopped and discarded"
    );
    assert_eq!(lines, ["run 1 start", "user: go", "run 1 end 504"]);
}

#[tokio::test(start_paused = true)]
async fn silent_models_have_the_same_time_limit() {
    let limits = Limits {
        answer_time: Duration::from_secs(60),
        ..Limits::default()
    };
    let rig = rig_with(limits, vec![Reply::hang()]);
    let (end, _) = ended(&rig).await;
    assert!(
        end.starts_with("end 504 the answer took longer than 60s"),
        "{end}"
    );
}

#[tokio::test]
async fn limits_apply_to_summaries() {
    let rig = rig_with(
        of_bytes(1000),
        vec![
            Reply::text("said"),
            Reply::text("x".repeat(2000)),
            Reply::text("x".repeat(2000)),
        ],
    );
    rig.run("go").await;
    let refused = rig.runtime.compact(&key(), None).await;
    let error = refused.expect_err("too long").to_string();
    assert!(error.contains("limits.answer_bytes"), "{error}");
}

/// Everything else of the runtime goes on while a model never pauses.
#[tokio::test]
async fn fast_models_yield_to_other_tasks() {
    let endless = Reply::pieces(vec!["x"; 100_000]);
    let rig = rig_with(Limits::default(), vec![endless]);
    let run = rig.submit("go");
    let mut turns = 0_u32;
    let others = async {
        while rig.runtime.load().1 > 0 || turns == 0 {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    let (_, ()) = futures_util::join!(read(run), others);
    assert!(turns > 100, "{turns} turns");
}

/// A whole answer is published before a slow disk stores it.
#[tokio::test]
async fn text_is_published_before_it_is_stored() {
    let rig = rig(vec![Reply::text("all at once")]);
    let mut run = rig.submit("go");
    read_until(&mut run, "all at once").await;
    assert_eq!(rig.lines(), ["run 1 start", "user: go"]);
    read(run).await;
    assert_eq!(rig.lines().len(), 4);
}
