//! Messages queued behind another run (CONV-3).

use crate::rig::{CHAT, IDLE, ModelServer, Output, TestEnv, Tmux, eventually, has_tools, within};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use serde_json::Value;

/// An answer that begins and waits to be released.
fn held(text: &str) -> Reply {
    openai::pieces(&["It begins ", text]).held_after(2)
}

/// Waits until a file below the work folder holds a text.
async fn holds(env: &TestEnv, file: &str, text: &str) -> String {
    let path = env.work.join(file);
    eventually(&format!("{text:?} in {file}"), async || {
        let said = std::fs::read_to_string(&path).ok()?;
        said.contains(text).then_some(said)
    })
    .await
}

/// Asks twice, runs `rest` once the second message is queued, and returns both ends.
async fn two_in_a_row<T>(env: &TestEnv, rest: impl AsyncFnOnce() -> T) -> ([Output; 2], T) {
    let first = env.shell("exec \"$CRABTALK\" ask one > out1 2> err1");
    let others = async {
        holds(env, "out1", "It begins").await;
        let second = env.shell("exec \"$CRABTALK\" ask two > out2 2> err2");
        let rest = async {
            holds(env, "err2", "behind another run").await;
            rest().await
        };
        tokio::join!(second, rest)
    };
    let all = async { tokio::join!(first, others) };
    let (first, (second, rest)) = within("all answers", all).await;
    ([first, second], rest)
}

#[tokio::test]
async fn queued_messages_report_their_place_and_start() {
    let model = ModelServer::start(Script::openai([
        held("and ends."),
        openai::text("The second."),
        openai::text("The third."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let read = |file: &str| std::fs::read_to_string(env.work.join(file)).unwrap();
    let (others, third) = two_in_a_row(&env, async || {
        let waits = read("err2");
        assert!(!waits.contains("answers with"), "{waits}");
        assert_eq!(read("out2"), "");
        let third = env.shell("exec \"$CRABTALK\" --json ask three > out3 2> err3");
        let release = async {
            holds(&env, "out3", "\"type\":\"queued\"").await;
            model.release().await;
        };
        tokio::join!(third, release).0
    })
    .await;
    for ended in others.iter().chain([&third]) {
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

#[tokio::test]
async fn chat_shows_the_place_in_the_queue() {
    if !has_tools("chat_shows_the_place_in_the_queue", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        held("and ends."),
        held("and is the second."),
        openai::text("The third."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let (both, ()) = two_in_a_row(&env, async || {
        let terminal = Tmux::sized(&env, CHAT, 80, 24);
        terminal.shows("It begins", 1).await;
        terminal.types_half("three");
        terminal.key("Tab");
        terminal.shows("queued, 2 ahead: three", 1).await;
        model.release().await;
        terminal.shows("queued: three", 1).await;
        terminal.shows("\u{203a} two", 1).await;
        terminal.shows("It begins", 2).await;
        model.release().await;
        let screen = terminal.shows("The third.", 1).await;
        assert!(!screen.contains("ahead"), "{screen}");
        let order = [
            "It begins and ends.",
            "\u{203a} two",
            "and is the second.",
            "\u{203a} three",
        ];
        let places: Vec<Option<usize>> = order.iter().map(|text| screen.find(text)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{places:?}\n{screen}"
        );
        terminal.shows(IDLE, 1).await;
    })
    .await;
    assert_eq!(both.map(|ended| ended.code), [Some(0), Some(0)]);
}
