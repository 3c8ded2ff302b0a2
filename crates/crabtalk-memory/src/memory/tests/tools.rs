//! The four tools.

use super::*;

#[tokio::test]
async fn the_tools_work_and_explain_themselves() {
    use serde_json::json;
    let world = World::new();
    let dog = json!({ "name": "Dog", "description": "pet", "content": "Rex" });
    assert_eq!(
        world.call("user", "remember", dog.clone()).await.content,
        "Remembered \"Dog\"."
    );
    let found = world
        .call("user", "recall", json!({ "query": "pet", "limit": 3 }))
        .await;
    assert_eq!(
        found.content,
        "- entry \"Dog\" (from user, 2026-03-01): pet. Rex\n"
    );
    let nothing = world
        .call("user", "recall", json!({ "query": "submarine" }))
        .await;
    assert!(!nothing.is_error && nothing.content.starts_with("Nothing found."));
    assert_eq!(
        world
            .call("user", "forget", json!({ "name": "Dog" }))
            .await
            .content,
        "Forgot \"Dog\"."
    );
    let again = world.call("user", "forget", json!({ "name": "Dog" })).await;
    assert!(
        again.is_error && again.content.contains("no memory entry named"),
        "{again:?}"
    );
    let wrong = world
        .call("user", "remember", json!({ "name": "Dog" }))
        .await;
    assert_eq!(
        wrong,
        ToolOutput::error("remember: missing field `content`")
    );
    let names: Vec<String> = world
        .memory
        .specs()
        .iter()
        .map(|s| s.name.clone())
        .collect();
    assert_eq!(names, ["remember", "forget", "recall", "memory"]);
}
