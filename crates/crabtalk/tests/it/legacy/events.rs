//! What older clients read in the list of all runs' events.

use super::*;
use std::collections::BTreeMap;

#[tokio::test]
async fn labels_name_tools_durations_and_tokens() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let mut watching = RawClient::connect(&env).await;
    watching.send(SUBSCRIBE_EVENTS, Fields::default()).await;
    let mut client = RawClient::connect(&env).await;
    client.ask(PING, Fields::default()).await;
    let order = r#"/tool bash {"command":"echo one\necho two"}"#;
    client.send(STREAM, say("crab", order, "me")).await;
    to_end(&mut client).await;

    const TOOL_START: u64 = 2;
    const TOOL_RESULT: u64 = 3;
    const DONE: u64 = 5;
    let mut labels = BTreeMap::new();
    within("the end among the events", async {
        while !labels.contains_key(&DONE) {
            let event = watching.read().await.message(answer::EVENT);
            labels.insert(event.number(3), event);
        }
    })
    .await;
    let calls = &labels[&TOOL_START];
    assert_eq!(calls.text(4), "bash(echo one)");
    assert_eq!(calls.message(6).text(1), "bash");
    let result = &labels[&TOOL_RESULT];
    let duration = result.text(4);
    let number = duration.strip_suffix("ms").expect("milliseconds");
    assert!(number.parse::<u64>().is_ok(), "{duration}");
    assert_eq!(result.text(7), "one\ntwo\n", "{result:?}");
    let done = labels[&DONE].text(4);
    assert!(
        done.starts_with("offline ") && done.contains(" in / "),
        "{done}"
    );
    assert!(done.ends_with(" out"), "{done}");
}
