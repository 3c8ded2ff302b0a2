//! `agents` and `approvals` on the command line.

use super::call;
use crate::rig::TestEnv;
use serde_json::{Value, json};
use std::fs;

#[tokio::test]
async fn permanent_grants_are_listed_and_revoked() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let asking = env.run(&[
        "ask",
        "--wait",
        "--no-stdin",
        "/tool bash {\"command\":\"touch made\"}",
    ]);
    let approving = async {
        loop {
            if env.run(&["approve", "--always"]).await.code == Some(0) {
                return;
            }
        }
    };
    let (asked, ()) = tokio::join!(asking, approving);
    asked.ok();
    let shown = env.run(&["approvals", "--json"]).await.ok();
    let approval: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&approval["index"], &approval["exact"], &approval["tool"]),
        (&json!(1), &json!("touch made"), &json!("bash"))
    );
    assert_eq!(approval["cwd"], env.work.display().to_string());
    // The approved command runs without an ask.
    fs::remove_file(env.work.join("made")).unwrap();
    assert!(
        !call(&env, "bash", json!({"command": "touch made"}))
            .await
            .is_error
    );

    assert!(
        env.run(&["approvals", "rm", "2"])
            .await
            .fails(1)
            .contains("no approval 2")
    );
    env.run(&["approvals", "rm", "1"]).await.ok();
    assert_eq!(env.run(&["approvals", "--json"]).await.ok(), "");
    let denied = env.run(&[
        "ask",
        "--no-stdin",
        "/tool bash {\"command\":\"touch made\"}",
    ]);
    assert!(denied.await.stdout.contains("denied"));
}
