//! Calls whose ids a server repeats (CONV-5).

use super::say;
use crate::rig::{ModelServer, TestEnv, chunks, end_of, entries, stream_to_end};
use crabtalk_proto::{StreamEvent, stream_event};
use crabtalk_testkit::scripted::answer::answer;
use crabtalk_testkit::scripted::{FinishReason, Format, Part, Script};
use std::collections::HashSet;

/// Ids of calls that began and that ended.
fn told(events: &[StreamEvent]) -> (Vec<String>, Vec<String>) {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for event in events {
        match &event.event {
            Some(stream_event::Event::ToolStart(start)) => {
                begun.extend(start.calls.iter().map(|call| call.call_id.clone()));
            }
            Some(stream_event::Event::ToolResult(result)) => ended.push(result.call_id.clone()),
            _ => {}
        }
    }
    (begun, ended)
}

/// The server refuses what the provider would, for instance an id that names two
/// calls.
#[tokio::test]
async fn calls_of_a_server_that_names_each_the_same_are_told_apart() {
    let cases = [
        (Format::OpenAi, "openai"),
        (Format::Anthropic, "anthropic"),
        (Format::Google, "google"),
    ];
    for (format, kind) in cases {
        let title = |title: &str| {
            let arguments = format!("{{\"title\":{title:?}}}");
            let call = Part::call("call_0", "set_title", &[&arguments]);
            answer(format, &[call], FinishReason::Calls)
        };
        let said = |text: &str| answer(format, &[Part::text(&[text])], FinishReason::Done);
        let replies = [
            title("one"),
            title("two"),
            said("first"),
            title("three"),
            said("last"),
        ];
        let server = ModelServer::start(Script::new(format, replies)).await;
        let env = TestEnv::with_model(&server);
        let file = env.home.join("config/config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        env.config(&text.replace("\"openai\"", &format!("{kind:?}")));
        env.agent("crab", "");
        let daemon = env.daemon().await;
        let events = stream_to_end(&env, say("crab", "user", "name it")).await;
        assert_eq!(end_of(&events).code, 0, "{kind}: {events:?}");
        let (mut begun, ended) = told(&events);
        assert_eq!(begun, ended, "{kind}");
        daemon.kill().await;

        // A log says the same.
        let _daemon = env.daemon().await;
        let events = stream_to_end(&env, say("crab", "user", "again")).await;
        assert_eq!(chunks(&events), "last", "{kind}: {events:?}");
        begun.extend(told(&events).0);
        let apart: HashSet<&String> = begun.iter().collect();
        assert_eq!((begun.len(), apart.len()), (3, 3), "{kind}: {begun:?}");
        assert!(!entries(&env, "crab", "user").await.is_empty());
        server.requests().await;
    }
}
