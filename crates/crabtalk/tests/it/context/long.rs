//! A run of 400 steps in a window of 8,000 tokens, killed twice.

use super::{SUMMARISE, message, summarising, told};
use crate::rig::{ModelServer, TestEnv, end_of, eventually, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, Client, GetHistoryMsg, StreamEvent};
use crabtalk_testkit::scripted::{Reply, openai};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;

const STEPS: usize = 400;

/// Where the daemon is killed while the model speaks.
const KILLED_IN_ANSWER: usize = 200;

/// Where the daemon is killed while a tool works.
const KILLED_IN_TOOL: usize = 300;

/// Tokens that the model takes.
const WINDOW: usize = 8_000;

/// Bytes of a token, roughly.
const TOKEN_BYTES: usize = 4;

/// How far apart the looks at a run's progress are, in steps.
const STRIDE: usize = 20;

const QUESTION: &str = "Do the four hundred steps of the list, in order, each of them once.";

fn step(number: usize) -> Reply {
    let end = match number {
        // Never ends without a signal.
        KILLED_IN_TOOL => "exec sleep 1000".to_owned(),
        _ => format!("printf '%0520d' {number}"),
    };
    let command = format!("echo {number} >> steps; {end}");
    openai::tools(
        &format!("s{number}"),
        &[("bash", json!({ "command": command }))],
    )
}

fn script() -> impl Iterator<Item = Reply> {
    let half = openai::pieces(&["half a word"]).stall_after(2);
    (1..KILLED_IN_ANSWER)
        .map(step)
        .chain([half])
        .chain((KILLED_IN_ANSWER..=STEPS).map(step))
        .chain([openai::text("All steps are done.")])
}

/// The output of the commands so far.
fn done(env: &TestEnv) -> Vec<usize> {
    let text = fs::read_to_string(env.work.join("steps")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Waits until so many steps are done; in strides, since each has its limit.
async fn reach(env: &TestEnv, steps: usize) {
    for stride in (done(env).len()..=steps).step_by(STRIDE).chain([steps]) {
        let what = format!("step {stride}");
        eventually(&what, async || (done(env).len() >= stride).then_some(())).await;
    }
}

#[tokio::test]
async fn four_hundred_steps_survive_compactions_and_kills() {
    let summary = "The steps of the list are being done one after the other. All went well so far.";
    let model = ModelServer::start(summarising(script(), summary)).await;
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"scripted\"\n\n[runs]\nresume = \"auto\"\n\n[provider.test]\nkind = \"openai\"\n\
         base_url = \"{}\"\napi_key = \"sk-test\"\n\
         models = [{{ name = \"scripted\", context = {WINDOW} }}]\n",
        model.url()
    ));
    env.agent("crab", "permissions: { bash: allow }\nmax_iterations: 500");

    let daemon = env.daemon().await;
    {
        let mut connection = env.connect().await;
        let mut events = std::pin::pin!(connection.stream(message(&env, "user", QUESTION)));
        let half_a_word = async {
            loop {
                match events.next().await.unwrap().unwrap().event {
                    Some(Event::Chunk(chunk)) if chunk.content.contains("half") => return,
                    Some(Event::End(end)) => panic!("ended before: {end:?}"),
                    _ => {}
                }
            }
        };
        tokio::join!(half_a_word, reach(&env, KILLED_IN_ANSWER - 1));
    }
    daemon.kill().await;

    // The next daemon continues without a request.
    let daemon = env.daemon().await;
    reach(&env, KILLED_IN_TOOL).await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    reach(&env, STEPS).await;
    let mut connection = env.connect().await;
    let events = connection.attach(AttachMsg::default());
    let events = events.map(Result::unwrap).collect::<Vec<_>>();
    let end = end_of(&within("the end of the run", events).await);
    assert_eq!((end.code, end.error.as_str()), (0, ""));

    // The same end, and every step once.
    assert_eq!(done(&env), (1..=STEPS).collect::<Vec<_>>());
    let last = GetHistoryMsg {
        limit: 1,
        ..GetHistoryMsg::default()
    };
    let last = env.connect().await.get_history(last).await.unwrap();
    assert_eq!(last.entries[0].content, "All steps are done.");

    let requests = model.requests().await;
    let (summaries, steps): (Vec<_>, Vec<_>) = requests
        .iter()
        .map(told)
        .partition(|told| told.contains(SUMMARISE));
    assert!(summaries.len() >= 12, "{} compactions", summaries.len());
    // The answer that was cut was asked for twice, the tool that was cut once.
    assert_eq!(steps.len(), STEPS + 2);
    for told in summaries.iter().chain(&steps) {
        assert!(told.contains(QUESTION), "the question is gone: {told}");
        assert!(told.len() / TOKEN_BYTES <= WINDOW, "{} bytes", told.len());
    }
}

#[tokio::test]
async fn a_compaction_is_an_event_of_the_run() {
    const MANY: usize = 80;
    let step = |number: usize| {
        let command = format!("printf '%0520d' {number}");
        openai::tools(
            &format!("s{number}"),
            &[("bash", json!({ "command": command }))],
        )
    };
    let run = |from: usize| {
        let steps = (from..from + MANY).map(step);
        steps.chain([openai::text("Done.")])
    };
    let script = summarising(run(0), "Numbers were printed.");
    let model = ModelServer::start(script).await;
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"scripted\"\n\n[provider.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         api_key = \"sk-test\"\nmodels = [{{ name = \"scripted\", context = {WINDOW} }}]\n",
        model.url()
    ));
    env.agent("crab", "permissions: { bash: allow }\nmax_iterations: 500");
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let events = connection.stream(message(&env, "user", "Print numbers."));
    let events = events.map(Result::unwrap).collect::<Vec<_>>();
    let events = within("the end", events).await;
    assert_eq!(end_of(&events).code, 0);
    let is_compacted = |e: &StreamEvent| matches!(e.event, Some(Event::Compacted(_)));
    assert!(events.iter().any(is_compacted));
}
