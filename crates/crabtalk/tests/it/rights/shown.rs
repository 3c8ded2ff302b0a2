//! Approvals allow exactly the call that they show (GATE-4).

use super::{call, results, say, tool};
use crate::rig::{TestEnv, asked, within};
use crabtalk_proto::{
    AskUserEvent, Client, ClientError, ListAsksMsg, ReplyToAsk, StreamEvent, ToolResultEvent,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::fs;

async fn reply(env: &TestEnv, ask: &AskUserEvent, answer: &str) -> Result<(), ClientError> {
    let reply = ReplyToAsk {
        content: answer.into(),
        ask_id: Some(ask.ask_id.clone()),
        ..ReplyToAsk::default()
    };
    env.connect().await.reply_to_ask(reply).await
}

/// Makes the offline model call a tool, checks the ask and answers it; returns the
/// result.
async fn answered(
    env: &TestEnv,
    name: &str,
    arguments: Value,
    answer: &str,
    judge: impl AsyncFnOnce(&AskUserEvent),
) -> ToolResultEvent {
    let mut asking = env.connect().await;
    let mut events = std::pin::pin!(asking.stream(say(env, tool(name, &arguments))));
    let ask = asked(&mut events).await;
    judge(&ask).await;
    reply(env, &ask, answer).await.unwrap();
    let rest: Vec<StreamEvent> = within("the end", events.map(Result::unwrap).collect()).await;
    results(&rest).pop().unwrap()
}

#[tokio::test]
async fn ask_shows_the_whole_change() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    fs::write(env.work.join("f"), "one\ntwo\nthree\n").unwrap();
    let edit = json!({"path": "f", "old_string": "two", "new_string": "2"});
    let diff = "--- before\n+++ after\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let result = answered(&env, "edit", edit, "y", async |ask| {
        assert_eq!(ask.detail, env.work.join("f").to_str().unwrap());
        assert_eq!(
            (ask.preview.as_str(), ask.preview_kind.as_str()),
            (diff, "diff")
        );
        assert_eq!(ask.cwd, env.work.to_str().unwrap());
        // Clients that show only the question also show the diff.
        assert!(ask.questions[0].question.ends_with(diff), "{ask:?}");
        let listed = env.connect().await.list_asks(ListAsksMsg::default()).await;
        assert_eq!(listed.unwrap().asks[0].ask.as_ref(), Some(ask));
        let json = env.run(&["asks", "--json"]).await.ok();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["preview"], diff);
        let shown = env.run(&["asks"]).await.ok();
        assert!(shown.contains("\n    -two\n    +2\n"), "{shown}");
    })
    .await;
    assert!(!result.is_error, "{result:?}");
    let write = json!({"path": "new", "content": "a\nb\n"});
    answered(&env, "write", write, "y", async |ask| {
        assert_eq!(
            (ask.preview.as_str(), ask.preview_kind.as_str()),
            ("a\nb\n", "content")
        );
        assert!(ask.reason.ends_with("the file is new"), "{ask:?}");
    })
    .await;
    let write = json!({"path": "new", "content": "a\nc\n"});
    answered(&env, "write", write, "n", async |ask| {
        assert!(ask.preview.contains("-b\n+c\n"), "{ask:?}");
    })
    .await;
    assert_eq!(fs::read_to_string(env.work.join("new")).unwrap(), "a\nb\n");
}

#[tokio::test]
async fn hidden_characters_are_shown_and_run_unchanged() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let command = "printf '%s' 'a\u{202e}b\u{200b}c' > out # \r\nprintf d >> out";
    let shown = "printf '%s' 'a<U+202E>b<U+200B>c' > out # <U+000D>\nprintf d >> out";
    answered(
        &env,
        "bash",
        json!({"command": command}),
        "y",
        async |ask| {
            assert_eq!((ask.detail.as_str(), ask.lines), (shown, 2));
            assert!(ask.questions[0].question.contains(shown), "{ask:?}");
            assert_eq!(ask.always.as_ref().unwrap().exact, shown);
            let asks = env.run(&["asks"]).await.ok();
            assert!(asks.contains("(2 lines)"), "{asks}");
            for line in shown.lines() {
                assert!(asks.lines().any(|l| l.trim() == line), "{asks}");
            }
        },
    )
    .await;
    let out = fs::read_to_string(env.work.join("out")).unwrap();
    assert_eq!(out, "a\u{202e}b\u{200b}cd");
}

#[tokio::test]
async fn command_too_long_to_show_is_denied() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let command = format!("true {}", "x".repeat(600 * 1024));
    let result = call(&env, "bash", json!({"command": command})).await;
    assert!(
        result.is_error && result.output.contains("too many to show"),
        "{}",
        result.output.len()
    );
}

#[tokio::test]
async fn ask_of_a_stranger_names_the_owner_to_approve() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let tool = tool("bash", &json!({"command": "touch secret-name"}));
    let asked = env.run(&["ask", "--as", "tg:1", "--no-stdin", &tool]).await;
    let said = asked.fails(1);
    assert!(
        said.contains("waits for an owner to approve a tool call"),
        "{said}"
    );
    let listed = env.connect().await.list_asks(ListAsksMsg::default()).await;
    let pending = listed.unwrap().asks;
    assert!(pending[0].inbox, "the run goes on");
}
