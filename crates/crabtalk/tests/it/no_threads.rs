//! A user whose limit of processes is reached: what needs a thread or a
//! process waits or fails, and nothing is lost for good.

use crate::rig::{
    Daemon, TestEnv, as_another, chunks, end_of, eventually, has_tools, skip, within,
};
use crabtalk_proto::{Client, Ping, StreamEvent, StreamMsg};
use futures_util::StreamExt;
use futures_util::future::join_all;
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

/// The names of the daemon's threads.
fn threads(daemon: &Daemon) -> Vec<String> {
    let tasks = format!("/proc/{}/task", daemon.pid().as_raw_nonzero());
    let tasks = std::fs::read_dir(tasks).unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        // One that has ended meanwhile has no name.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).collect()
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
    // Before there was any work for them.
    eventually("the threads that work needs", async || {
        let names = threads(&daemon);
        let of = |name: &str| names.iter().filter(|it| it.starts_with(name)).count();
        (of("log-sync") == 1 && of("tokio-") >= 2).then_some(())
    })
    .await;

    limit_threads(&daemon, Some(1));
    // Conversations that are new, one that is known, and a command.
    for sender in ["a", "b", "c", "a"] {
        // What needs no more than what is there is answered.
        let events = say(&env, sender, "hello").await.unwrap();
        assert_eq!(end_of(&events).code, 0, "{sender}");
        assert!(chunks(&events).contains("You told me: hello"), "{sender}");
    }
    // At once, too: what would have a thread of its own waits for one that is there.
    let senders: Vec<String> = (0..16).map(|number| format!("at once {number}")).collect();
    let said = senders.iter().map(|sender| say(&env, sender, "hello"));
    for events in join_all(said).await {
        assert_eq!(end_of(&events.unwrap()).code, 0);
    }
    let bash = say(&env, "d", "/tool bash {\"command\": \"echo ran\"}").await;
    let bash = bash.unwrap();
    assert_eq!(end_of(&bash).code, 0);
    assert!(
        chunks(&bash).contains("cannot start the guardian"),
        "{}",
        chunks(&bash)
    );
    env.connect().await.ping(Ping {}).await.unwrap();

    limit_threads(&daemon, before);
    for sender in ["a", "b", "c", "d"] {
        let events = say(&env, sender, "again").await.unwrap();
        assert_eq!(end_of(&events).code, 0, "{sender}");
        assert!(chunks(&events).contains("You told me: again"), "{sender}");
    }
    let bash = say(&env, "d", "/tool bash {\"command\": \"echo ran\"}").await;
    assert!(chunks(&bash.unwrap()).contains("ran\n"));
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
