//! Tool calls and the gate before them.

use super::*;

#[tokio::test]
async fn broken_calls_are_error_results() {
    let rig = rig(vec![
        Reply::tools([("nonsense", json!({})), ("echo", json!("text"))]),
        Reply::text("ok"),
    ]);
    let events = rig.run("go").await;
    assert!(
        events
            .iter()
            .any(|e| e.starts_with("result! there is no tool \"nonsense\""))
    );
    assert!(
        events
            .iter()
            .any(|e| e.starts_with("result! the arguments must be"))
    );
    assert_eq!(last(&events), "end 0");
}

#[tokio::test]
async fn rules_allow_and_deny_without_a_question() {
    for (permission, outcome) in [
        (Permission::Allow, "result done"),
        (Permission::Deny, "result! denied"),
    ] {
        let catalog = with_crab(|crab| crab.permissions = vec![rule("danger", permission)]);
        let replies = vec![Reply::tool("danger", json!({})), Reply::text("ok")];
        let rig = rig_on(ScriptedModel::new(replies), MemoryStore::default(), catalog);
        let events = rig.run("go").await;
        assert!(events.iter().any(|e| e.starts_with(outcome)), "{events:?}");
        assert!(!events.iter().any(|e| e.starts_with("ask")));
    }
}

#[tokio::test]
async fn ask_user_returns_a_json_object() {
    let question = json!({"questions": [{"question": "Colour?", "options": [{"label": "Red"}]}]});
    let rig = rig(vec![Reply::tool("ask_user", question), Reply::text("ok")]);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask Colour?").await;
    rig.reply("1").await;
    let events = read(run).await;
    assert_eq!(events[1], r#"result {"Colour?":"Red"}"#, "{events:?}");
}

#[tokio::test]
async fn titles_are_set_by_tool_and_client() {
    let rig = rig(vec![
        Reply::tool("set_title", json!({"title": " Fix  it "})),
        Reply::text("ok"),
    ]);
    rig.run("go").await;
    assert!(rig.lines().contains(&"meta title Fix it".to_owned()));
    rig.runtime
        .set(&key(), Some("By hand".into()), None)
        .await
        .expect("exists");
    assert_eq!(
        rig.runtime.live(&key()).map(|l| l.meta.title),
        Some("By hand".into())
    );
    let nobody = crabtalk_domain::ConversationKey::new("crab", "nobody").expect("valid");
    let error = rig
        .runtime
        .set(&nobody, Some("x".into()), None)
        .await
        .expect_err("absent");
    assert_eq!(error.code(), 404);
}

fn choosing(tool: &str) -> RunRequest {
    RunRequest {
        tool_choice: ToolChoice::Named(tool.into()),
        ..RunRequest::new(key(), "hi")
    }
}

#[tokio::test]
async fn named_tool_choices_must_exist() {
    let rig = rig(vec![Reply::text("done")]);
    let events = rig.send(choosing("no_such_tool")).await;
    let end = events.last().expect("an end");
    assert!(end.starts_with("end 400"), "{events:?}");
    assert!(
        end.contains("there is no tool \"no_such_tool\"; there are: ") && end.contains("echo"),
        "{end}"
    );
    assert!(rig.model.requests().is_empty(), "no provider was asked");
    rig.send(choosing("echo")).await;
    let choice = &rig.model.requests()[0].tool_choice;
    assert_eq!(*choice, ToolChoice::Named("echo".into()));
}
