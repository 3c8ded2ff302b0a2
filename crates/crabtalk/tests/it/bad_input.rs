//! What bad input gets: a clear refusal, and nothing else breaks.

use crate::rig::{Fields, ModelServer, RawClient, TestEnv, chunks, entries, stream_to_end};
use crabtalk_proto::{Client, ClientError, SendMsg, StreamMsg};
use crabtalk_testkit::scripted::Script;
use std::fs;

fn refused<T>(answer: Result<T, ClientError>) -> (u32, String) {
    match answer {
        Err(ClientError::Refused(status)) => (status.code, status.message),
        Err(error) => panic!("not refused: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

fn to(agent: &str, sender: &str, content: &str) -> SendMsg {
    SendMsg {
        agent: agent.into(),
        sender: Some(sender.into()),
        content: content.into(),
        ..SendMsg::default()
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    for (request, code, says) in [
        (to("nobody", "u", "hi"), 404, "there are: crab"),
        (to("crab", "u", ""), 400, "empty"),
        (to("crab", "u", " \n\t"), 400, "empty"),
        (to("../crab", "u", "hi"), 400, "is not a name"),
        (to("crab", &"x".repeat(5000), "hi"), 400, "5000 bytes"),
        (to("crab", "cron", "hi"), 403, "reserved"),
        (to("crab", "delegate:1", "hi"), 403, "reserved"),
    ] {
        let (found, message) = refused(connection.send(request).await);
        assert_eq!(found, code, "{message}");
        assert!(message.contains(says), "{message}");
    }
    let cwd = SendMsg {
        cwd: Some("/does/not/exist".into()),
        ..to("crab", "u", "hi")
    };
    let (code, message) = refused(connection.send(cwd).await);
    assert_eq!(code, 400);
    assert!(message.contains("/does/not/exist"), "{message}");
    assert!(env.logs().is_empty(), "a refusal made a conversation");
    connection.send(to("crab", "u", "hi")).await.unwrap();
}

#[tokio::test]
async fn oversized_frame_is_413_and_closes() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    client
        .bytes(&(16 * 1024 * 1024 + 1_u32).to_be_bytes())
        .await;
    let (code, message) = client.read().await.error();
    assert_eq!(code, 413);
    assert!(message.contains("16777217"), "{message}");
    assert!(client.next().await.is_none(), "the connection lives");
    // Others are served as before.
    env.connect().await.ping(Default::default()).await.unwrap();
    drop(daemon);
}

#[tokio::test]
async fn malformed_frame_is_400_and_keeps_the_connection() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    const PING: u64 = 30;
    const UNKNOWN: u64 = 999;
    // Field 2 says that 120 bytes follow; none do.
    for garbage in [&b"\xff\xff\xff\xff\xff"[..], b"\x12\x78"] {
        client.payload(garbage).await;
        let (code, message) = client.read().await.error();
        assert_eq!(code, 400);
        assert!(message.contains("malformed frame: "), "{message}");
        let pong = client.ask(PING, Fields::default()).await;
        assert_eq!(pong.fields(), [2]);
    }
    for nothing_known in [UNKNOWN, 198] {
        let unknown = client.ask(nothing_known, Fields::default().text(1, "?"));
        let (code, message) = unknown.await.error();
        assert_eq!(code, 400);
        assert!(message.contains(env!("CARGO_PKG_VERSION")), "{message}");
        let pong = client.ask(PING, Fields::default()).await;
        assert_eq!(pong.fields(), [2]);
    }
}

#[tokio::test]
async fn truncated_frame_is_logged() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    client.bytes(&[0, 0, 0, 9, 1, 2]).await;
    drop(client);
    crate::rig::eventually("the log to name it", async || {
        let log = daemon.stderr();
        log.contains("9 bytes were announced, 2 came").then_some(())
    })
    .await;
}

#[tokio::test]
async fn second_daemon_names_the_first() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let pid = daemon.pid().as_raw_nonzero();
    let link = env.root().join("link");
    std::os::unix::fs::symlink(&env.home, &link).unwrap();
    for home in [&env.home, &link] {
        let home = home.to_str().unwrap();
        let second = env.run(&["--home", home, "daemon", "run"]).await;
        let says = second.fails(1);
        assert!(says.contains(&format!("pid {pid} ")), "{says}");
    }
    env.connect().await.ping(Default::default()).await.unwrap();
}

#[tokio::test]
async fn broken_log_line_is_skipped() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    for content in ["one", "two"] {
        connection
            .send(to("crab", "broken", content))
            .await
            .unwrap();
    }
    connection.send(to("crab", "whole", "three")).await.unwrap();
    daemon.kill().await;

    let log = env.logs().into_iter().find(|log| {
        let text = fs::read_to_string(log).unwrap();
        text.lines().next().unwrap().contains("\"broken\"")
    });
    let log = log.unwrap();
    let mut lines: Vec<String> = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let message = lines
        .iter()
        .position(|line| line.contains("\"one\""))
        .unwrap();
    lines[message] = "{\"role\":\"user\",\"content\":17".into();
    fs::write(&log, lines.join("\n") + "\n").unwrap();
    let bytes = fs::read(&log).unwrap();

    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    connection.send(to("crab", "broken", "more")).await.unwrap();
    let told = entries(&env, "crab", "broken").await;
    let said: Vec<_> = told.iter().map(|entry| entry.content.as_str()).collect();
    assert!(said.contains(&"two") && said.contains(&"more"), "{said:?}");
    assert!(!said.contains(&"one"), "{said:?}");
    let name = log.file_name().unwrap().to_str().unwrap();
    let warned = daemon.stderr();
    assert!(
        warned.contains(name) && warned.contains("passed over"),
        "{warned}"
    );
    assert!(
        fs::read(&log).unwrap().starts_with(&bytes),
        "it was changed"
    );

    connection.send(to("crab", "whole", "four")).await.unwrap();
    assert_eq!(entries(&env, "crab", "whole").await.len(), 4);
    let listed = connection
        .list_conversations(Default::default())
        .await
        .unwrap();
    assert!(listed.conversations.iter().any(|c| c.sender == "whole"));
}

#[tokio::test]
async fn configuration_errors_name_place_and_remedy() {
    let env = TestEnv::new();
    for (config, place, says) in [
        ("default_agent = 5\n", "config.toml:1:17", "string"),
        ("\n[storage]\nsync = \"often\"\n", "config.toml:3:8", "step"),
        ("model = \"m\n", "config.toml:1:", "config.toml"),
        (
            "[provider.p]\nkind = \"opanai\"\nmodels = [\"m\"]\n",
            "config.toml:2:8",
            "openai",
        ),
    ] {
        env.config(config);
        let run = env.run(&["daemon", "run"]).await.fails(1);
        assert!(run.contains(place) && run.contains(says), "{run}");
    }
    // A client that wants to start it tells the same.
    let ask = env.run(&["ask", "hello"]).await.fails(3);
    assert!(ask.contains("config.toml:2:8"), "{ask}");
    // An unknown key warns, with the nearest known one.
    env.config("modle = \"offline\"\n");
    let daemon = env.daemon().await;
    let log = daemon.stderr();
    assert!(
        log.contains("config.toml:1:1") && log.contains("did you mean model?"),
        "{log}"
    );
}

#[tokio::test]
async fn broken_agent_file_is_reported_and_others_work() {
    let env = TestEnv::new();
    env.agent("good", "description: Works");
    env.agent("bad", "description: Broken\nmax_iterations: many");
    env.config("default_agent = \"good\"\n");
    let daemon = env.daemon().await;
    let log = daemon.stderr();
    assert!(log.contains("bad.md:3:17"), "{log}");
    let mut connection = env.connect().await;
    connection.send(to("good", "u", "hi")).await.unwrap();
    let (code, says) = refused(connection.send(to("bad", "u", "hi")).await);
    assert_eq!(code, 409, "{says}");
}

#[tokio::test]
async fn unknown_model_names_the_known_ones() {
    let model = ModelServer::start(Script::openai([])).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "model: skripted");
    let _daemon = env.daemon().await;
    let request = StreamMsg {
        content: "hi".into(),
        ..StreamMsg::default()
    };
    let events = stream_to_end(&env, request).await;
    let end = crate::rig::end_of(&events);
    assert_ne!(end.code, 0);
    assert!(end.error.contains("skripted"), "{end:?}");
    assert!(
        end.error.replace("skripted", "").contains("scripted"),
        "{end:?}"
    );
    assert_eq!(chunks(&events), "");
}
