//! Configured servers that are programs.

use super::{allowing, call, program, result, running, tool};
use crate::rig::{TestEnv, eventually, has_tools, stream_to_end};
use serde_json::json;
use std::fs;

fn starts(env: &TestEnv) -> Vec<i32> {
    let text = fs::read_to_string(env.root().join("starts")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test]
async fn no_program_outlives_the_daemon() {
    if !has_tools("no_program_outlives_the_daemon", &["python3"]) {
        return;
    }
    for signal in ["KILL", "TERM"] {
        let env = TestEnv::new();
        allowing(&env);
        let marker = env.root().join("starts").display().to_string();
        env.config(&program(
            "files",
            &format!("env = {{ START = \"{marker}\" }}"),
        ));
        let daemon = env.daemon().await;
        call(&env, "files__echo", json!({"text": "a"})).await;
        assert!(running(&marker) > 0);
        if signal == "KILL" {
            daemon.kill().await;
        } else {
            assert!(daemon.terminate().await.success());
        }
        let own = starts(&env);
        assert!(!own.is_empty());
        // A zombie has no environment, by which other processes are found.
        let is_zombie = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(") Z ")
        };
        eventually("no process of the server", async || {
            (running(&marker) == 0 && !own.iter().any(is_zombie)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn progress_images_and_kept_output_reach_the_run() {
    if !has_tools(
        "progress_images_and_kept_output_reach_the_run",
        &["python3"],
    ) {
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "permissions: { \"*__*\": allow, read: allow }");
    env.config(&program("files", ""));
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, tool("files__progress", json!({}))).await;
    let far: Vec<(f64, String)> = events
        .iter()
        .filter_map(|event| match &event.event {
            Some(crabtalk_proto::stream_event::Event::ToolProgress(p)) => {
                Some((p.progress, p.message.clone()))
            }
            _ => None,
        })
        .collect();
    assert!(far.contains(&(2.0, "step 2".into())), "{far:?}");
    assert_eq!(result(&events).output, "there");
    let picture = call(&env, "files__picture", json!({})).await;
    assert_eq!(picture.images.len(), 1);
    let big = call(&env, "files__big", json!({"bytes": 200_000})).await;
    assert!(big.output.len() < 40_000);
    let path = big.output.split("the whole output is in ").nth(1).unwrap();
    let path = path.split(']').next().unwrap().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().len(), 200_000);
    let read = call(&env, "read", json!({ "path": path })).await;
    assert!(!read.is_error, "the agent may read it: {read:?}");
}
