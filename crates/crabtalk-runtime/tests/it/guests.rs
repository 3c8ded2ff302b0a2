//! Guest turns (RUN-2).

use crate::rig::*;
use crabtalk_runtime::RunRequest;
use crabtalk_testkit::Reply;
use serde_json::json;

fn guest(content: &str) -> RunRequest {
    let mut request = RunRequest::new(key(), content);
    request.guest = Some("ada".into());
    request
}

#[tokio::test]
async fn guests_answer_with_their_prompt_on_the_history() {
    let rig = rig(vec![
        Reply::text("I am crab"),
        Reply::text("I am ada"),
        Reply::text("back"),
    ]);
    rig.run("who?").await;
    let events = rig.send(guest("and you?")).await;
    assert_eq!(events[0], "start ada 2");
    rig.run("and now?").await;
    assert!(rig.lines().contains(&"assistant<ada>: I am ada".to_owned()));

    let requests = rig.model.requests();
    assert!(requests[1].system.starts_with("You are ada."));
    assert!(requests[1].system.contains("as a guest"));
    assert!(requests[1].tools.is_empty());
    assert!(requests[2].system.starts_with("You are crab."));
    assert!(
        requests[2]
            .system
            .contains("Continue responding as yourself")
    );
    let rendered: Vec<String> = requests[2]
        .messages()
        .map(|m| m.rendered(true).into_owned())
        .collect();
    assert_eq!(rendered[1], "I am crab");
    assert_eq!(rendered[3], "<from agent=\"ada\">\nI am ada\n</from>");
    assert!(
        !rig.lines().iter().any(|line| line.contains("<from")),
        "framing never reaches disk"
    );
    rig.model_was_content();
}

#[tokio::test]
async fn tool_calls_of_guests_are_rejected() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "x"})).saying("let me"),
        Reply::tool("echo", json!({"text": "x"})),
    ]);
    let kept = rig.send(guest("one")).await;
    assert_eq!(last(&kept), "end 0");
    let refused = rig.send(guest("two")).await;
    assert!(last(&refused).starts_with("end 422"), "{refused:?}");
    assert!(rig.tools.called().is_empty());
    assert!(rig.lines().contains(&"assistant<ada>: let me".to_owned()));
}

#[tokio::test]
async fn primary_as_its_own_guest_is_a_normal_turn() {
    let rig = rig(vec![Reply::text("me")]);
    let mut request = RunRequest::new(key(), "hi");
    request.guest = Some("crab".into());
    rig.send(request).await;
    let requests = rig.model.requests();
    assert!(!requests[0].tools.is_empty());
    assert!(rig.lines().contains(&"assistant: me".to_owned()));
}
