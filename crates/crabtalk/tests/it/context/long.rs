//! A run of many steps in a window of 8,000 tokens, killed twice.

use super::{SUMMARISE, message, summarising, told};
use crate::rig::{ModelServer, TestEnv, end_of, eventually, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, Client, GetHistoryMsg};
use crabtalk_testkit::scripted::{Reply, openai};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;

const STEPS: usize = 100;

/// The step at which the daemon is killed while the model answers.
const KILLED_IN_ANSWER: usize = 45;

/// The step at which the daemon is killed while a tool runs.
const KILLED_IN_TOOL: usize = 75;

/// The size of the model's context window in tokens.
const WINDOW: usize = 8_000;

/// Approximate bytes per token.
const TOKEN_BYTES: usize = 4;

const QUESTION: &str = "Do the steps of the list, in order, each of them once.";

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

/// Waits until this many steps are done.
async fn reach(env: &TestEnv, steps: usize) {
    let what = format!("step {steps}");
    eventually(&what, async || (done(env).len() >= steps).then_some(())).await;
}

#[tokio::test]
async fn long_run_survives_compactions_and_kills() {
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

    // The result is the same, and every step ran once.
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
    assert!(summaries.len() >= 2, "{} compactions", summaries.len());
    // The interrupted answer was requested twice, the interrupted tool call once.
    assert_eq!(steps.len(), STEPS + 2);
    for told in summaries.iter().chain(&steps) {
        assert!(told.contains(QUESTION), "the question is gone: {told}");
        assert!(told.len() / TOKEN_BYTES <= WINDOW, "{} bytes", told.len());
    }
}
