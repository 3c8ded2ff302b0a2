//! Servers of the configuration that are programs.

use super::{allowing, call, children, comes_to_be, components, program, result, running, tool};
use crate::rig::{TestEnv, eventually, gone, has_tools, stream_to_end, within};
use crabtalk_proto::{Client, KillMsg, StreamMsg};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;

fn starts(env: &TestEnv) -> Vec<i32> {
    let text = fs::read_to_string(env.root().join("starts")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn counted(env: &TestEnv, more: &str) -> String {
    let starts = env.root().join("starts");
    program(
        "files",
        &format!("env = {{ START = \"{}\" }}\n{more}", starts.display()),
    )
}

#[tokio::test]
async fn a_program_is_started_on_first_use_and_ended_when_idle() {
    if !has_tools("programs", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&counted(&env, "idle_secs = 1"));
    let daemon = env.daemon().await;
    assert_eq!(components(&env).await[0].state, "idle");
    assert_eq!(starts(&env).len(), 0, "nobody has asked for it");
    assert_eq!(
        call(&env, "files__echo", json!({"text": "a"})).await.output,
        "a"
    );
    let first = starts(&env);
    assert_eq!(first.len(), 1);
    comes_to_be(&env, "files", "idle").await;
    gone(first[0]).await;
    let daemons = daemon.pid().as_raw_nonzero().get();
    eventually("nothing left of it", async || {
        children(daemons).is_empty().then_some(())
    })
    .await;
    // Its tools stay on offer, and the next call starts it again.
    assert_eq!(
        call(&env, "files__echo", json!({"text": "b"})).await.output,
        "b"
    );
    assert_eq!(starts(&env).len(), 2);
    // Another daemon knows its tools without starting it.
    assert!(daemon.terminate().await.success());
    let _daemon = env.daemon().await;
    let known = components(&env).await;
    assert_eq!((known[0].state.as_str(), starts(&env).len()), ("idle", 2));
    assert!(known[0].tool_count > 10);
}

/// It is at rest from when it is there, not from when it was asked for.
#[tokio::test]
async fn slow_starting_program_is_started_once() {
    if !has_tools("programs", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let starts_file = env.root().join("starts");
    let more = format!(
        "env = {{ START = \"{}\", LATE_SECS = \"1.5\" }}\nidle_secs = 1",
        starts_file.display()
    );
    env.config(&program("files", &more));
    let _daemon = env.daemon().await;
    let called = call(&env, "files__echo", json!({"text": "a"})).await;
    assert_eq!((called.output.as_str(), starts(&env).len()), ("a", 1));
}

#[tokio::test]
async fn no_program_outlives_the_daemon() {
    if !has_tools("orphans", &["python3"]) {
        return;
    }
    for signal in ["KILL", "TERM"] {
        let env = TestEnv::new();
        allowing(&env);
        let marker = env.root().join("starts").display().to_string();
        env.config(&counted(&env, ""));
        let daemon = env.daemon().await;
        call(&env, "files__echo", json!({"text": "a"})).await;
        assert!(running(&marker) > 0);
        if signal == "KILL" {
            daemon.kill().await;
        } else {
            assert!(daemon.terminate().await.success());
        }
        let own = starts(&env);
        assert!(!own.is_empty(), "it says its number");
        // It has no environment to be found by.
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
async fn a_program_that_dies_costs_its_call_and_is_started_again() {
    if !has_tools("dying", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&counted(&env, ""));
    let daemon = env.daemon().await;
    let died = call(&env, "files__die", json!({})).await;
    assert!(
        died.is_error && died.output.contains("ended before it answered"),
        "{died:?}"
    );
    assert_eq!(
        call(&env, "files__echo", json!({"text": "b"})).await.output,
        "b"
    );
    assert_eq!(starts(&env).len(), 2);
    let left = children(daemon.pid().as_raw_nonzero().get());
    assert!(left.iter().all(|child| !child.ends_with('Z')), "{left:?}");
}

#[tokio::test]
async fn one_that_cannot_start_says_why_and_delays_no_further_run() {
    if !has_tools("broken", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let broken = "env = { BROKEN = \"1\", COMPLAIN = \"the disk is on fire\" }";
    env.config(&format!(
        "{}[mcp.absent]\ncommand = \"/no/such/program\"\n[mcp.unset]\ncommand = \"x\"\nargs = [\"${{NO_SUCH_VARIABLE}}\"]\n",
        program("files", broken)
    ));
    let _daemon = env.daemon().await;
    let missing = call(&env, "files__echo", json!({"text": "a"})).await;
    assert!(missing.is_error, "{missing:?}");
    let all = components(&env).await;
    let why = |name: &str| {
        let found = all.iter().find(|known| known.name == name).unwrap();
        assert_eq!(found.state, "failed", "{found:?}");
        found.error.clone()
    };
    let files = why("files");
    assert!(
        files.contains("code 7") && files.contains("disk is on fire"),
        "{files}"
    );
    assert!(
        why("absent").contains("cannot be started"),
        "{}",
        why("absent")
    );
    assert!(
        why("unset").contains("NO_SUCH_VARIABLE"),
        "{}",
        why("unset")
    );
}

#[tokio::test]
async fn another_credential_is_another_server() {
    if !has_tools("credentials", &["python3"]) {
        return;
    }
    let mut env = TestEnv::new();
    env.set("PROVIDER_KEY", "sk-of-the-daemon");
    allowing(&env);
    let with = |key: &str| program("files", &format!("env = {{ API_KEY = \"{key}\" }}"));
    env.config(&with("first"));
    let _daemon = env.daemon().await;
    let variable = async |name: &str| {
        call(&env, "files__environment", json!({"name": name}))
            .await
            .output
    };
    assert_eq!(variable("API_KEY").await, "first");
    assert_eq!(
        variable("PROVIDER_KEY").await,
        "(not set)",
        "the daemon's own are not handed on"
    );
    let pid: i32 = call(&env, "files__pid", json!({}))
        .await
        .output
        .parse()
        .unwrap();
    env.config(&with("second"));
    env.connect()
        .await
        .reload(crabtalk_proto::ReloadMsg {})
        .await
        .unwrap();
    gone(pid).await;
    assert_eq!(variable("API_KEY").await, "second");
    let shown = env
        .connect()
        .await
        .list_mcps(crabtalk_proto::ListMcpsMsg {})
        .await
        .unwrap();
    assert_eq!(shown.mcps[0].env["API_KEY"], "***");
}

#[tokio::test]
async fn calls_run_concurrently_and_killed_run_cancels_its_own() {
    if !has_tools("parallel", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.agent("other", "permissions: { \"*__*\": allow }");
    env.config(&program("files", ""));
    let _daemon = env.daemon().await;
    call(&env, "files__echo", json!({})).await;
    let mut connection = env.connect().await;
    let events = connection.stream(StreamMsg {
        agent: "crab".into(),
        sender: Some("user".into()),
        ..tool("files__slow", json!({"ms": 60_000}))
    });
    let kill = async {
        eventually("the call", async || {
            let all = components(&env).await;
            (all[0].calls == 1).then_some(())
        })
        .await;
        // Another conversation's call is not held up by it.
        let other = StreamMsg {
            agent: "other".into(),
            ..tool("files__echo", json!({"text": "x"}))
        };
        assert_eq!(result(&stream_to_end(&env, other).await).output, "x");
        let kill = KillMsg::default();
        env.connect().await.kill(kill).await.unwrap();
    };
    let collected = events.map(Result::unwrap).collect::<Vec<_>>();
    within("a killed run", async { tokio::join!(collected, kill) }).await;
    eventually("the cancellation", async || {
        let told = call(&env, "files__cancelled", json!({})).await;
        (told.output == "1").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_says_nothing_ends_in_time() {
    if !has_tools("timeout", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&program("files", "timeout_secs = 1"));
    let _daemon = env.daemon().await;
    let late = call(&env, "files__slow", json!({"ms": 60_000})).await;
    assert!(
        late.is_error && late.output.contains("no answer within 1 s"),
        "{late:?}"
    );
    eventually("the cancellation", async || {
        let told = call(&env, "files__cancelled", json!({})).await;
        (told.output == "1").then_some(())
    })
    .await;
}

#[tokio::test]
async fn tools_that_come_later_are_in_the_next_request() {
    if !has_tools("list_changed", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&program("files", ""));
    let _daemon = env.daemon().await;
    call(&env, "files__grow", json!({})).await;
    let found = eventually("the new tool", async || {
        let result = call(&env, "files__extra", json!({})).await;
        (!result.is_error).then_some(result.output)
    })
    .await;
    assert_eq!(found, "extra answers");
}

#[tokio::test]
async fn results_of_every_kind_reach_the_run() {
    if !has_tools("results", &["python3"]) {
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
    assert!(picture.output.contains("test://r"), "{}", picture.output);
    let failed = call(&env, "files__fail", json!({})).await;
    assert_eq!(
        (failed.output.as_str(), failed.is_error),
        ("it did not work", true)
    );
    let big = call(&env, "files__big", json!({"bytes": 200_000})).await;
    assert!(big.output.len() < 40_000);
    let path = big.output.split("the whole output is in ").nth(1).unwrap();
    let path = path.split(']').next().unwrap().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().len(), 200_000);
    let read = call(&env, "read", json!({ "path": path })).await;
    assert!(!read.is_error, "the agent may read it: {read:?}");
}
