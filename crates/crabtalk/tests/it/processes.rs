//! No process of a tool outlives its run or the daemon, and none may talk to
//! the daemon (RUN-10, GATE-5).

use crate::rig::{CRABTALK, TestEnv, chunks, end_of, eventually, gone, stream_to_end, within};
use crabtalk_proto::{Client, KillMsg, StreamMsg};
use futures_util::StreamExt;
use serde_json::json;

/// A command whose descendants leave its session, its group and its parent.
const ESCAPE: &str = "(setsid sh -c 'echo $$ > away.pid; exec sleep 1000' &) ; \
    sh -c 'echo $$ > near.pid; exec sleep 1000' & wait; sleep 1000";

/// A home whose agent may run commands without asking.
fn permissive() -> TestEnv {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    env
}

fn bash(env: &TestEnv, command: &str) -> StreamMsg {
    StreamMsg {
        content: format!("/tool bash {}", json!({ "command": command })),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

/// The process whose number a file comes to hold.
async fn pid_in(env: &TestEnv, file: &str) -> i32 {
    let path = env.work.join(file);
    eventually(file, async || {
        std::fs::read_to_string(&path).ok()?.trim().parse().ok()
    })
    .await
}

#[tokio::test]
async fn a_kill_ends_every_descendant() {
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
async fn the_daemons_death_ends_every_descendant() {
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
async fn a_command_that_ends_leaves_nothing_behind() {
    let env = permissive();
    let _daemon = env.daemon().await;
    let command = "setsid sh -c 'echo $$ > away.pid; exec sleep 1000' & \
        while [ ! -s away.pid ]; do :; done; echo left";
    let events = stream_to_end(&env, bash(&env, command)).await;
    assert!(chunks(&events).contains("left"));
    gone(pid_in(&env, "away.pid").await).await;
}

#[tokio::test]
async fn a_tool_process_may_not_talk_to_the_daemon() {
    let env = permissive();
    let daemon = env.daemon().await;
    let home = env.home.display();
    for way in ["", "setsid ", "setsid setsid -f "] {
        let command = format!(
            "{way}'{CRABTALK}' --home '{home}' stats > out 2>&1; \
             until [ -s out ]; do :; done; cat out"
        );
        let events = stream_to_end(&env, bash(&env, &command)).await;
        let text = chunks(&events);
        assert!(
            text.contains("processes that an agent started may not talk to the daemon"),
            "{way}: {text}"
        );
    }
    assert!(daemon.stderr().contains("a tool process tried to connect"));
}

#[tokio::test]
async fn commands_do_not_see_the_daemons_keys() {
    let mut env = permissive();
    env.set("OPENAI_API_KEY_FOR_TESTS", "planted-key");
    env.set("SOME_TOKEN", "planted-token");
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, bash(&env, "env; echo PATH is $PATH")).await;
    let text = chunks(&events);
    assert!(text.contains("PATH is /"), "{text}");
    assert!(!text.contains("planted"), "{text}");
}
