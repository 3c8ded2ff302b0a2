//! No process of a tool outlives its run or the daemon, or can connect to
//! the daemon (RUN-10, GATE-5).

use crate::rig::{CRABTALK, TestEnv, chunks, end_of, eventually, gone, stream_to_end, within};
use crabtalk_proto::{Client, KillMsg, StreamMsg};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;

/// A command whose descendants leave its session, its group and its parent.
const ESCAPE: &str = "(setsid sh -c 'echo $$ > away.pid; exec sleep 1000' &) ; \
    sh -c 'echo $$ > near.pid; exec sleep 1000' & wait; sleep 1000";

/// A home whose agent may run commands without asking.
fn permissive() -> TestEnv {
    let env = TestEnv::new();
    env.agent("crab", "mode: full");
    env
}

fn bash(env: &TestEnv, command: &str) -> StreamMsg {
    StreamMsg {
        content: format!("/tool bash {}", json!({ "command": command })),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

/// Waits for the process id in a file.
async fn pid_in(env: &TestEnv, file: &str) -> i32 {
    let path = env.work.join(file);
    eventually(file, async || {
        std::fs::read_to_string(&path).ok()?.trim().parse().ok()
    })
    .await
}

#[tokio::test]
async fn kill_ends_every_descendant() {
    let env = permissive();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let events = connection.stream(bash(&env, ESCAPE));
    let killing = async {
        let pids = [
            pid_in(&env, "near.pid").await,
            pid_in(&env, "away.pid").await,
        ];
        env.connect().await.kill(KillMsg::default()).await.unwrap();
        pids
    };
    let collected = events.map(Result::unwrap).collect::<Vec<_>>();
    let (events, pids) = within("a killed run", async { tokio::join!(collected, killing) }).await;
    assert_eq!(end_of(&events).code, 499);
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn end_of_the_daemon_ends_every_descendant() {
    for signal in ["KILL", "TERM"] {
        let env = permissive();
        let daemon = env.daemon().await;
        let mut connection = env.connect().await;
        let mut events = std::pin::pin!(connection.stream(bash(&env, ESCAPE)));
        events.next().await.unwrap().unwrap();
        let pids = [
            pid_in(&env, "near.pid").await,
            pid_in(&env, "away.pid").await,
        ];
        if signal == "KILL" {
            daemon.kill().await;
        } else {
            assert!(daemon.terminate().await.success());
        }
        for pid in pids {
            gone(pid).await;
        }
    }
}

#[tokio::test]
async fn process_of_a_command_is_refused_by_the_daemon() {
    let env = permissive();
    let daemon = env.daemon().await;
    let home = env.home.display();
    for way in ["", "setsid ", "setsid setsid -f "] {
        let command = format!(
            "{way}'{CRABTALK}' --home '{home}' stats > out 2>&1; \
             until [ -s out ]; do :; done; cat out"
        );
        // The gate would deny a command that names the home.
        env.script("client", &format!("#!/bin/sh\n{command}"));
        let events = stream_to_end(&env, bash(&env, "./client")).await;
        let text = chunks(&events);
        assert!(
            text.contains("processes that an agent started may not connect to the daemon"),
            "{way}: {text}"
        );
    }
    assert!(daemon.stderr().contains("a tool process tried to connect"));
}

#[tokio::test]
async fn commands_get_the_initial_limit_of_open_files() {
    let env = permissive();
    let limit = 256;
    let daemon = env.daemon_with_open_files(limit).await;
    let pid = daemon.pid().as_raw_nonzero();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let own = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let own = own.and_then(|line| line.split_whitespace().nth(3)).unwrap();
    assert!(
        own.parse::<u64>().unwrap() > limit,
        "it has more itself: {own}"
    );
    let events = stream_to_end(&env, bash(&env, "echo limit $(ulimit -n) end")).await;
    let text = chunks(&events);
    assert!(text.contains(&format!("limit {limit} end")), "{text}");
}

/// An upgrade replaces or removes the program; another version's guardian may not
/// understand the request.
#[tokio::test]
async fn commands_run_after_the_program_was_replaced_or_removed() {
    let env = permissive();
    let program = env.root().join("crabtalk");
    if fs::hard_link(CRABTALK, &program).is_err() {
        fs::copy(CRABTALK, &program).unwrap();
    }
    let _daemon = env.daemon_of(&program).await;
    let said = async |word: &str| {
        let events = stream_to_end(&env, bash(&env, &format!("echo it is {word}"))).await;
        chunks(&events)
    };
    assert!(said("there").await.contains("\nit is there"));
    env.write("other", "no program at all");
    fs::rename(env.user_home.join("other"), &program).unwrap();
    let after = said("replaced").await;
    assert!(after.contains("\nit is replaced"), "{after}");
    fs::remove_file(&program).unwrap();
    let after = said("removed").await;
    assert!(after.contains("\nit is removed"), "{after}");
}
