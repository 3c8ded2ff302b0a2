//! Approvals allow exactly the call that they show (GATE-4).

use super::{call, results, say, tool};
use crate::rig::{TestEnv, asked, within};
use crabtalk_proto::{
    AskUserEvent, Client, ClientError, ListAsksMsg, ReplyToAsk, StreamEvent, StreamMsg,
    ToolResultEvent,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

async fn reply(env: &TestEnv, ask: &AskUserEvent, answer: &str) -> Result<(), ClientError> {
    let reply = ReplyToAsk {
        content: answer.into(),
        ask_id: Some(ask.ask_id.clone()),
        ..ReplyToAsk::default()
    };
    env.connect().await.reply_to_ask(reply).await
}

/// Lets the offline model call a tool, judges the ask, and answers it; gives
/// the result.
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
        // Clients that show the question alone show it too.
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
async fn allow_always_holds_for_the_same_content_only() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let path = env.work.join("f");
    let write = |content: &str| json!({"path": "f", "content": content});
    answered(&env, "write", write("good"), "Allow always", async |ask| {
        let always = ask.always.as_ref().unwrap();
        assert_eq!(
            (always.agent.as_str(), always.sender.as_str()),
            ("crab", "user")
        );
        assert!(
            always.exact.starts_with(path.to_str().unwrap()),
            "{always:?}"
        );
        assert!(always.exact.contains(" becomes sha256:"), "{always:?}");
        assert_eq!(always.cwd, env.work.to_str().unwrap());
    })
    .await;
    fs::write(&path, "changed").unwrap();
    // The same content is not asked for again; another one is.
    assert!(!call(&env, "write", write("good")).await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "good");
    let denied = answered(&env, "write", write("evil"), "n", async |_| {}).await;
    assert!(denied.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "good");
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
        result.is_error && result.output.contains("too many to be shown"),
        "{}",
        result.output.len()
    );
}

#[tokio::test]
async fn paths_outside_reveal_nothing_before_approval() {
    let env = TestEnv::new();
    env.config("[runs]\nask_timeout_secs = 1\n");
    let daemon = env.daemon().await;
    let outside = env.user_home.join("private");
    fs::create_dir_all(outside.join("folder")).unwrap();
    fs::write(outside.join("file"), "secret").unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        outside.join("fifo"),
        rustix::fs::Mode::RWXU,
    )
    .unwrap();
    symlink(outside.join("file"), env.work.join("leads")).unwrap();
    symlink(outside.join("missing"), env.work.join("misleads")).unwrap();
    let inside = |path: &str| json!({"path": path});
    let names = [
        "file",
        "folder",
        "fifo",
        "missing",
        "missing/below",
        "file/below",
        "folder/../file",
    ];
    let paths = names.map(|name| inside(outside.join(name).to_str().unwrap()));
    let mut told = Vec::new();
    for arguments in paths
        .into_iter()
        .chain([inside("leads"), inside("misleads")])
    {
        let edit = json!({"path": arguments["path"], "old_string": "a", "new_string": "b"});
        for (name, arguments) in [("read", arguments), ("edit", edit)] {
            let request = StreamMsg {
                sender: Some("tg:1".into()),
                ..say(&env, tool(name, &arguments))
            };
            let events = crate::rig::stream_to_end(&env, request).await;
            told.push(results(&events).pop().unwrap().output);
        }
    }
    told.dedup();
    assert_eq!(told, ["denied: nobody answered the approval in time"]);
    // After approval the error is shown. From here on there is time to answer.
    daemon.terminate().await;
    env.config("");
    let _daemon = env.daemon().await;
    let missing = inside(outside.join("missing").to_str().unwrap());
    let result = answered(&env, "read", missing, "y", async |_| {}).await;
    assert!(result.output.contains("no such file"), "{result:?}");
    let edit = json!({"path": outside.join("missing"), "old_string": "a", "new_string": "b"});
    let result = answered(&env, "edit", edit, "y", async |ask| {
        assert!(
            ask.reason.contains("it would fail: no such file"),
            "{ask:?}"
        );
        assert!(ask.always.is_none());
    })
    .await;
    assert!(result.output.contains("no such file"), "{result:?}");
}

#[tokio::test]
async fn approval_is_on_disk_before_the_reply() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let file = env.home.join("config/approvals.toml");
    fs::create_dir(&file).unwrap();
    let touch = json!({"command": "touch made"});
    answered(&env, "bash", touch.clone(), "Allow once", async |ask| {
        let error = reply(&env, ask, "Allow always")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot be kept") && error.contains("approvals.toml"),
            "{error}"
        );
        assert!(!env.work.join("made").exists());
    })
    .await;
    fs::remove_dir(&file).unwrap();
    let kept = answered(&env, "bash", touch, "Deny", async |ask| {
        let _ = ask;
    })
    .await;
    assert!(kept.is_error, "nothing was kept before");
    let touch = json!({"command": "touch made again"});
    let mut asking = env.connect().await;
    let mut events = std::pin::pin!(asking.stream(say(&env, tool("bash", &touch))));
    let ask = asked(&mut events).await;
    reply(&env, &ask, "Allow always").await.unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("exact = \"touch made again\""), "{text}");
    let rest: Vec<StreamEvent> = within("the end", events.map(Result::unwrap).collect()).await;
    assert!(!results(&rest).pop().unwrap().is_error);
}

#[tokio::test]
async fn ask_of_a_stranger_says_that_an_owner_must_approve() {
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
