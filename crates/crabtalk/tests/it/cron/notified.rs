//! Notifications of results, failures and asks, by a command or to an address.

use super::{create, crons_file, fire, fired, yearly};
use crate::rig::{TestEnv, eventually, within};
use crabtalk_proto::CreateCronMsg;
use serde_json::Value;
use std::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The values passed to the notifier, one per line.
fn told(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(env.work.join("told")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

async fn told_of(env: &TestEnv, kind: &str) -> Value {
    eventually("the notifier", async || {
        told(env).into_iter().find(|value| value["kind"] == kind)
    })
    .await
}

#[tokio::test]
async fn owner_is_notified_of_failures_asks_and_results() {
    let mut env = TestEnv::new();
    env.set("OPENAI_TEST_KEY_OF_NOBODY", "secret");
    let told = env.work.join("told");
    let command = format!(
        "env > {0}.part; mv {0}.part {0}.env; cat >> {0}; echo >> {0}",
        told.display()
    );
    env.config(&format!("[notify]\ncommand = '{command}'\n"));
    let _daemon = env.daemon().await;
    let quiet = create(&env, yearly("without notice")).await.id;
    assert_eq!(fired(&env, quiet).await.outcome, "ok");
    let loud = CreateCronMsg {
        notify: Some("results".into()),
        ..yearly("tell me")
    };
    let loud = create(&env, loud).await.id;
    fired(&env, loud).await;
    let result = told_of(&env, "result").await;
    assert_eq!(result["cron"], loud);
    assert!(
        result["text"].as_str().unwrap().contains("tell me"),
        "{result}"
    );
    let failing = CreateCronMsg {
        skill: "none".into(),
        ..yearly("x")
    };
    let failing = create(&env, failing).await.id;
    for _ in 0..3 {
        fired(&env, failing).await;
    }
    assert_eq!(told_of(&env, "failed").await["cron"], failing);
    assert_eq!(told_of(&env, "paused").await["cron"], failing);
    eventually("the pause in the file", async || {
        let file = fs::read_to_string(crons_file(&env)).unwrap();
        file.contains("paused = true").then_some(())
    })
    .await;
    let asking = CreateCronMsg {
        asks: Some("inbox".into()),
        ..yearly("/tool bash {\"command\":\"touch x\"}")
    };
    let asking = create(&env, asking).await.id;
    fire(&env, asking).await;
    let ask = told_of(&env, "ask").await;
    assert!(ask["text"].as_str().unwrap().contains("touch x"), "{ask}");
    assert!(!ask["ask_id"].as_str().unwrap().is_empty());
    assert!(!self::told(&env).iter().any(|value| value["cron"] == quiet));
    // The command gets none of the daemon's secrets.
    let environment = fs::read_to_string(env.work.join("told.env")).unwrap();
    assert!(environment.contains("CRABTALK_TITLE=") && !environment.contains("secret"));
}

#[tokio::test]
async fn address_is_notified_and_kept_secret() {
    let env = TestEnv::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    env.config(&format!(
        "[notify]\nurl = \"http://{address}/hook?token=secret\"\n"
    ));
    let daemon = env.daemon().await;
    let loud = CreateCronMsg {
        notify: Some("results".into()),
        ..yearly("tell me")
    };
    let id = create(&env, loud).await.id;
    fire(&env, id).await;
    let (mut stream, _) = within("the call", listener.accept()).await.unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(7).any(|part| part == b"tell me") {
        let read = within("the body", stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&request));
        request.extend_from_slice(&buffer[..read]);
    }
    let request = String::from_utf8(request).unwrap();
    assert!(
        request.starts_with("POST /hook?token=secret HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\"kind\":\"result\""), "{request}");
    stream
        .write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    let failed = "the server answered 500";
    eventually(failed, async || {
        daemon.stderr().contains(failed).then_some(())
    })
    .await;
    assert!(
        !daemon.stderr().contains("token=secret"),
        "an address may be a secret"
    );
}
