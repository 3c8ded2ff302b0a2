//! `crabtalk daemon`: start, stop, status, reload, logs; signals and sockets.

use crate::rig::{ModelServer, TestEnv, gone, within};
use crabtalk_proto::{Client, Ping, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn commands_start_and_stop_the_daemon() {
    let env = TestEnv::new();
    let started = json(&env.run(&["daemon", "start", "--json"]).await.ok());
    assert_eq!(started["started"], true);
    let again = json(&env.run(&["daemon", "start", "--json"]).await.ok());
    assert_eq!(
        (&again["started"], &again["pid"]),
        (&Value::Bool(false), &started["pid"])
    );
    let status = json(&env.run(&["daemon", "status", "--json"]).await.ok());
    assert_eq!(status["pid"], started["pid"]);
    assert_eq!(status["home"], env.home.to_str().unwrap());
    let services = status["services"].as_array().unwrap();
    let connections = services.iter().find(|s| s["name"] == "connections");
    let connections = connections.unwrap();
    assert_eq!(connections["state"], "running", "{connections}");
    assert_eq!(connections["on_failure"], "end daemon", "{connections}");
    let told = env.run(&["daemon", "status"]).await.ok();
    assert!(told.contains("SERVICE"), "{told}");
    assert!(told.contains("\nconnections "), "{told}");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&env.socket()), 0o600);
    assert_eq!(mode(&env.home), 0o700);
    assert!(env.run(&["daemon", "logs"]).await.ok().contains("ready"));

    let stopped = env.run(&["daemon", "stop"]).await;
    assert_eq!(stopped.stderr, "crabtalk: the daemon was stopped\n");
    assert!(!env.socket().exists());
    let pid = i32::try_from(started["pid"].as_i64().unwrap()).unwrap();
    gone(pid).await;
    let nothing = env.run(&["daemon", "stop"]).await;
    assert_eq!(
        (nothing.code, nothing.stderr.as_str()),
        (Some(0), "crabtalk: no daemon runs\n")
    );
    env.run(&["daemon", "status"]).await.fails(3);
}

#[tokio::test]
async fn simultaneous_clients_start_one_daemon() {
    let env = TestEnv::new();
    let ask = async |text: &str| env.run(&["ask", text, "--as", text]).await.ok();
    let answers = tokio::join!(ask("a"), ask("b"), ask("c"), ask("d"));
    for answer in [answers.0, answers.1, answers.2, answers.3] {
        assert!(answer.contains("You told me: "), "{answer}");
    }
    env.run(&["daemon", "stop"]).await.ok();
    let log = std::fs::read_to_string(env.home.join("logs/daemon.log")).unwrap();
    assert_eq!(log.matches(" ready ").count(), 1, "{log}");
}

#[tokio::test]
async fn signal_ends_the_daemon_during_a_run() {
    let cut = openai::pieces(&["one", "two"]).stall_after(2);
    let model = ModelServer::start(Script::openai([cut])).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    // One client sent half a frame, another waits for an answer.
    let mut half = UnixStream::connect(env.socket()).await.unwrap();
    half.write_all(&[0, 0, 0, 9, 1]).await.unwrap();
    let mut connection = env.connect().await;
    let request = StreamMsg {
        content: "hello".into(),
        ..StreamMsg::default()
    };
    let mut events = std::pin::pin!(connection.stream(request));
    for _ in 0..3 {
        within("an event", events.next()).await.unwrap().unwrap();
    }
    // The model would never finish its answer.
    let status = daemon.terminate().await;
    assert!(status.success(), "{status:?}");
    assert!(!env.socket().exists());
    // The stream got its End (WIRE-6).
    let rest: Vec<_> = events.map(Result::unwrap).collect().await;
    assert_ne!(crate::rig::end_of(&rest).code, 0);
}

#[tokio::test]
async fn exhausted_descriptors_end_no_connection() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut known = env.connect().await;
    let limit = |count| {
        let limit = Rlimit {
            current: Some(count),
            ..getrlimit(Resource::Nofile)
        };
        prlimit(Some(daemon.pid()), Resource::Nofile, limit).unwrap()
    };
    // No descriptor is free for a new connection.
    let before = limit(3);
    let mut waiting = env.connect_silently().await;
    // Connected clients are served at once; the new one once a descriptor is free.
    known.ping(Ping {}).await.unwrap();
    limit(before.current.unwrap());
    let answer = within("the newcomer's answer", waiting.ping(Ping {})).await;
    answer.unwrap();
}

#[tokio::test]
async fn too_few_descriptors_are_refused_with_advice() {
    let env = TestEnv::new();
    let with = async |most: u32, words: &str| {
        let script = format!("ulimit -n {most} && exec \"$CRABTALK\" {words}");
        env.shell(&script).await
    };
    for most in [8, 16, 63] {
        let said = with(most, "daemon run").await.fails(1);
        let want = format!("needs 64 open files, but the limit is {most}");
        assert!(
            said.contains(&want) && said.contains("ulimit -n 1024"),
            "{said}"
        );
    }
    // A client that starts the daemon reports the same.
    let said = with(32, "ask hello").await.fails(3);
    assert!(said.contains("needs 64 open files"), "{said}");
    // The limit named in the error suffices.
    env.agent("crab", "permissions: { bash: allow }");
    with(64, "daemon start").await.ok();
    let asked = r#"ask '/tool bash {"command": "echo served"}'"#;
    assert!(with(24, asked).await.ok().contains("served"));
    env.run(&["daemon", "stop"]).await.ok();
}
