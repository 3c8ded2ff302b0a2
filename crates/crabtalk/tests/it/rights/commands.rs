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
    // Asked no more.
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

#[tokio::test]
async fn agents_are_written_shown_and_removed() {
    let env = TestEnv::new();
    env.agent("crab", "description: the first");
    env.agent("main", "description: is meant when nobody is named");
    env.config("default_agent = \"main\"\n");
    let _daemon = env.daemon().await;
    let text = "---\n# why\ndescription: reviews\ntools: [read, bash]\nmembers: [crab]\n\
                permissions: { bash: deny, \"bash(git *)\": allow }\n---\nYou review.\n";
    let new = ["agents", "new", "rev", "--file", "-"];
    env.run_with(&new, Some(text)).await.ok();
    let taken = env.run_with(&["agents", "new", "REV", "--file", "-"], Some(text));
    assert!(taken.await.fails(1).contains("exists; choose another name"));
    let file = env.home.join("config/agents/rev.md");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    let shown = env.run(&["agents", "show", "rev", "--json"]).await.ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["rights"]["members"], json!(["crab"]));
    assert_eq!(
        shown["rights"]["tools"],
        json!([
            {"tool": "bash", "owner": "deny", "other": "deny", "unattended": "deny",
             "rules": ["bash: deny", "bash(git *): allow"]},
            {"tool": "read", "owner": "allow below the working folder, else ask", "other": "ask",
             "unattended": "deny", "rules": []},
        ])
    );
    let table = env.run(&["agents", "show", "rev"]).await.ok();
    assert!(
        table.contains("FOR OWNERS") && table.contains("bash(git *): allow"),
        "{table}"
    );

    let changed = text.replace("# why\n", "# whyever\n");
    env.run_with(&["agents", "edit", "rev", "--file", "-"], Some(&changed))
        .await
        .ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), changed);
    let broken = changed.replace("deny,", "dny,");
    let edit = env.run_with(&["agents", "edit", "rev", "--file", "-"], Some(&broken));
    assert!(edit.await.fails(1).contains("did you mean deny?"));
    assert_eq!(fs::read_to_string(&file).unwrap(), changed);

    assert!(
        env.run(&["agents", "rm", "main"])
            .await
            .fails(1)
            .contains("default agent")
    );
    env.run(&["agents", "rm", "rev"]).await.ok();
    assert!(!file.exists());
    // The built-in one takes the place of its file (CONV-12).
    env.run(&["agents", "rm", "crab"]).await.ok();
    let listed = env.run(&["agents", "list", "--json"]).await.ok();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("\"crab\"") && !listed.contains("the first"));
    assert!(
        env.run(&["agents", "show", "rev"])
            .await
            .fails(1)
            .contains("no agent \"rev\"")
    );
}
