//! A user whose limit of processes is reached: what needs a thread or a
//! process waits or fails, and nothing is lost for good.

use crate::rig::{Daemon, TestEnv, as_another, chunks, end_of, has_tools, skip, within};
use crabtalk_proto::{Client, Ping, StreamEvent, StreamMsg};
use futures_util::StreamExt;
use rustix::process::{Resource, getrlimit};
use std::process::Command;

/// Lets the daemon start no thread and no process, or any number again.
fn limit_threads(daemon: &Daemon, most: Option<u64>) {
    let most = most.map_or("unlimited".to_owned(), |most| most.to_string());
    let pid = daemon.pid().as_raw_nonzero();
    let limit = format!("{} prlimit --pid {pid} --nproc={most}:", as_another());
    let done = Command::new("sh").args(["-c", &limit]).status().unwrap();
    assert!(done.success());
}

async fn say(env: &TestEnv, sender: &str, content: &str) -> Result<Vec<StreamEvent>, String> {
    let request = StreamMsg {
        content: content.into(),
        sender: Some(sender.into()),
        ..StreamMsg::default()
    };
    let mut connection = env.connect().await;
    let events = within("a run", connection.stream(request).collect::<Vec<_>>()).await;
    events
        .into_iter()
        .map(|event| event.map_err(|e| e.to_string()))
        .collect()
}

#[tokio::test]
async fn without_threads_work_waits_or_fails_and_then_goes_on() {
    let name = "without_threads_work_waits_or_fails_and_then_goes_on";
    if !has_tools(name, &["setpriv", "prlimit"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let Some(daemon) = env.daemon_of_another().await else {
        return skip(name, "another user cannot reach the program");
    };
    let before = getrlimit(Resource::Nproc).current;
    say(&env, "before", "hello").await.unwrap();

    limit_threads(&daemon, Some(1));
    // Conversations that are new, one that is known, and a command.
    for sender in ["a", "b", "c", "before"] {
        // What needs no more than what is there is answered.
        let events = say(&env, sender, "hello").await.unwrap();
        assert_eq!(end_of(&events).code, 0, "{sender}");
    }
    let bash = say(&env, "d", "/tool bash {\"command\": \"echo ran\"}").await;
    if let Ok(events) = bash {
        assert!(!chunks(&events).contains("ran\n"), "{}", chunks(&events));
    }
    env.connect().await.ping(Ping {}).await.unwrap();

    limit_threads(&daemon, before);
    for sender in ["a", "b", "c", "before", "d"] {
        let events = say(&env, sender, "again").await.unwrap();
        assert_eq!(end_of(&events).code, 0, "{sender}");
        assert!(chunks(&events).contains("You told me: again"), "{sender}");
    }
    let said = daemon.stderr();
    assert!(!said.contains("panicked"), "{said}");
    assert!(daemon.terminate().await.success());
}

#[tokio::test]
async fn a_daemon_that_gets_no_thread_at_all_says_what_to_raise() {
    let name = "a_daemon_that_gets_no_thread_at_all_says_what_to_raise";
    if !has_tools(name, &["setpriv", "prlimit"]) {
        return;
    }
    let env = TestEnv::new();
    if !env.give_to_another().await {
        return skip(name, "another user cannot reach the program");
    }
    let script = format!(
        "exec {} prlimit --nproc=1 \"$CRABTALK\" daemon run",
        as_another()
    );
    let said = env.shell(&script).await;
    assert_eq!(said.code, Some(1));
    assert_eq!(
        said.stderr,
        "crabtalk: cannot start a thread; raise the user's limit of processes (`ulimit -u`)\n"
    );
}
