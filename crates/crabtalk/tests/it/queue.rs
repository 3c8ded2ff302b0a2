//! Messages queued behind another run (CONV-3).

use crate::rig::{ModelServer, TestEnv, eventually, within};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::Value;

/// Waits until a file below the work folder contains a text.
async fn holds(env: &TestEnv, file: &str, text: &str) -> String {
    let path = env.work.join(file);
    eventually(&format!("{text:?} in {file}"), async || {
        let said = std::fs::read_to_string(&path).ok()?;
        said.contains(text).then_some(said)
    })
    .await
}

#[tokio::test]
async fn queued_messages_report_their_place_and_start() {
    let model = ModelServer::start(Script::openai([
        openai::pieces(&["It begins ", "and ends."]).held_after(2),
        openai::text("The second."),
        openai::text("The third."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let read = |file: &str| std::fs::read_to_string(env.work.join(file)).unwrap();
    let first = env.shell("exec \"$CRABTALK\" ask one > out1 2> err1");
    let second = async {
        holds(&env, "out1", "It begins").await;
        env.shell("exec \"$CRABTALK\" ask two > out2 2> err2").await
    };
    let third = async {
        let waits = holds(&env, "err2", "behind another run").await;
        assert!(!waits.contains("answers with"), "{waits}");
        assert_eq!(read("out2"), "");
        env.shell("exec \"$CRABTALK\" --json ask three > out3 2> err3")
            .await
    };
    let release = async {
        holds(&env, "out3", "\"type\":\"queued\"").await;
        model.release().await;
    };
    let all = async { tokio::join!(first, second, third, release) };
    let (first, second, third, ()) = within("all answers", all).await;
    for ended in [first, second, third] {
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    assert!(!read("err1").contains("behind"), "{}", read("err1"));
    let said = read("err2");
    let waits = said.find("crabtalk: behind another run");
    let begins = said.find("crabtalk: running now");
    assert!(waits.is_some() && waits < begins, "{said}");
    assert!(begins < said.find("answers with"), "{said}");
    assert_eq!(read("out2"), "The second.\n");
    let lines: Vec<Value> = read("out3")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let queued: Vec<u64> = lines
        .iter()
        .filter(|line| line["type"] == "queued")
        .map(|line| line["ahead"].as_u64().unwrap())
        .collect();
    assert_eq!(queued, [2, 1], "{lines:?}");
    assert_eq!(lines[0]["origin"], "client:local", "{lines:?}");
    assert_eq!(lines[queued.len()]["type"], "start", "{lines:?}");
    assert_eq!(lines.last().unwrap()["text"], "The third.", "{lines:?}");
    assert!(!read("err3").contains("behind"), "{}", read("err3"));
}
