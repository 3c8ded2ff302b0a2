//! A component as memory provider (`[memory] provider`).

use super::{allowing, program, result, say, tool};
use crate::rig::{TestEnv, chunks, end_of, has_tools, stream_to_end};
use crabtalk_proto::StreamMsg;
use crabtalk_proto::stream_event::Event;
use serde_json::json;

#[tokio::test]
async fn component_as_memory_keeps_the_visibility() {
    if !has_tools("component_as_memory_keeps_the_visibility", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&format!(
        "[memory]\nprovider = \"notes\"\n{}",
        program("notes", "")
    ));
    let _daemon = env.daemon().await;
    let kept = stream_to_end(
        &env,
        tool("remember", json!({"name": "tea", "content": "green"})),
    )
    .await;
    assert_eq!(result(&kept).output, "remember tea");
    let own = stream_to_end(&env, tool("recall", json!({"query": "tea"}))).await;
    let own = result(&own).output;
    assert!(
        own.contains("of the owner") && own.contains("for everybody"),
        "{own}"
    );
    assert!(own.contains("\"ai.crabtalk/sender\": \"user\""), "{own}");
    let stranger = StreamMsg {
        sender: Some("stranger".into()),
        ..tool("recall", json!({"query": "tea"}))
    };
    let seen = result(&stream_to_end(&env, stranger).await).output;
    assert!(
        seen.contains("for everybody") && !seen.contains("of the owner"),
        "{seen}"
    );
}

#[tokio::test]
async fn failed_memory_is_reported_and_stops_no_run() {
    let env = TestEnv::new();
    env.config("[memory]\nprovider = \"nobody\"\n");
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, say("good day")).await;
    assert_eq!(end_of(&events).code, 0);
    assert!(chunks(&events).contains("good day"));
    let told = events.iter().any(|event| {
        matches!(&event.event, Some(Event::Notice(notice)) if notice.text.contains("nobody"))
    });
    assert!(told, "{events:?}");
}
