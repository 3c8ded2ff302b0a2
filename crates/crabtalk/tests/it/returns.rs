//! Rewinding a conversation and resuming its archives, through the daemon.

use crate::rig::{ModelServer, OVER, TestEnv, Tmux, entries, has_tools};
use crabtalk_proto::{Client, ReopenMsg, RewindMsg};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::{Value, json};

/// The texts of users and of the model in a request, without the injected context.
fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages").iter();
    let spoken = messages.filter(|message| message["role"] != "system");
    let texts = spoken.map(|message| message["content"].as_str().unwrap_or_default());
    let known = |text: &&str| {
        ["one", "two", "three", "four"]
            .iter()
            .any(|n| text.contains(n))
    };
    texts.filter(known).map(str::to_owned).collect()
}

async fn last_said(model: &ModelServer) -> Vec<String> {
    said(model.requests().await.last().expect("a request"))
}

#[tokio::test]
async fn rewind_holds_across_a_restart() {
    let replies = ["Of one.", "Of two.", "Of three."].map(openai::text);
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    env.run(&["ask", "--as", "user", "one"]).await.ok();
    env.run(&["ask", "--as", "user", "two"]).await.ok();
    let history = entries(&env, "crab", "user").await;
    let two = history.iter().find(|entry| entry.content == "two").unwrap();
    let request = RewindMsg {
        sender: "user".into(),
        index: two.index,
        ..RewindMsg::default()
    };
    let rewound = env.connect().await.rewind(request.clone()).await.unwrap();
    assert_eq!(rewound.content, "two");
    assert_eq!((rewound.first_run, rewound.last_run), (2, 2));
    let gone = RewindMsg {
        index: two.index + 1,
        ..request
    };
    let refused = env.connect().await.rewind(gone).await.unwrap_err();
    assert_eq!(refused.code(), Some(404));
    daemon.kill().await;
    let _daemon = env.daemon().await;
    env.run(&["ask", "--as", "user", "three"]).await.ok();
    assert_eq!(last_said(&model).await, ["one", "Of one.", "three"]);
    // The page shows the messages that the model is not sent, and the position of the rewind.
    let history = entries(&env, "crab", "user").await;
    let marked = history.iter().find(|entry| entry.rewound_to.is_some());
    let marked = marked.expect("a divider");
    assert_eq!(
        (&*marked.content, marked.rewound_to),
        ("Of two.", Some(two.index))
    );
}

#[tokio::test]
async fn resumed_archive_holds_across_a_restart() {
    let replies = ["Of one.", "Of two.", "Of three.", "Of four."].map(openai::text);
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    env.run(&["ask", "--as", "user", "one"]).await.ok();
    env.run(&["new", "--as", "user"]).await.ok();
    env.run(&["ask", "--as", "user", "two"]).await.ok();
    let listed = env.run(&["resume", "--as", "user", "--json"]).await.ok();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let told = env.run(&["resume", "--as", "user", "1"]).await.ok();
    assert!(told.contains("archive 1 is now the history"), "{told}");
    daemon.kill().await;
    let _daemon = env.daemon().await;
    env.run(&["ask", "--as", "user", "three"]).await.ok();
    assert_eq!(last_said(&model).await, ["one", "Of one.", "three"]);
    let request = ReopenMsg {
        sender: "user".into(),
        index: 2,
        ..ReopenMsg::default()
    };
    env.connect().await.reopen(request.clone()).await.unwrap();
    env.run(&["ask", "--as", "user", "four"]).await.ok();
    assert_eq!(last_said(&model).await, ["two", "Of two.", "four"]);
    let missing = ReopenMsg {
        index: 9,
        ..request
    };
    let refused = env.connect().await.reopen(missing).await.unwrap_err();
    assert_eq!(refused.code(), Some(404));
}

#[tokio::test]
async fn chat_rewinds_with_file_changes_and_resumes() {
    if !has_tools("chat_rewinds_with_file_changes_and_resumes", &["tmux"]) {
        return;
    }
    let write = json!({"path": "note", "content": "written\n"});
    let model = ModelServer::start(Script::openai([
        openai::text("Of one."),
        openai::tools("both", &[("write", write)]),
        openai::text("It is written."),
        openai::text("Of three."),
        openai::text("Of four."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { write: allow }");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, "\"$CRABTALK\" --as user", 80, 24);
    terminal.shows("type a message", 1).await;
    terminal.types("one");
    terminal.shows(OVER, 1).await;
    terminal.types("two, and write");
    terminal.shows("It is written.", 1).await;
    terminal.shows(OVER, 2).await;
    terminal.key("Escape");
    terminal.shows("Esc again", 1).await;
    terminal.key("Escape");
    let screen = terminal.shows("rewind to:", 1).await;
    let screen = match screen.contains("\u{203a} ") && screen.contains("\u{b7} one") {
        true => screen,
        false => terminal.shows("\u{b7} one", 1).await,
    };
    assert!(screen.contains("\u{b7} two, and write"), "{screen}");
    terminal.key("Enter");
    terminal.shows("Rewound to: two, and write", 1).await;
    terminal.shows("undo these file changes too?", 1).await;
    terminal.key("Down");
    terminal.shows("\u{203a} Yes, undo 1 file change", 1).await;
    terminal.key("Enter");
    terminal.shows("run 2 reverted:", 1).await;
    assert!(!env.work.join("note").exists());
    terminal.shows("\u{203a} two, and write", 2).await;
    terminal.key("C-c");
    terminal.types("three");
    terminal.shows("Of three.", 1).await;
    assert_eq!(last_said(&model).await, ["one", "Of one.", "three"]);

    terminal.shows(OVER, 3).await;
    terminal.types("/new");
    terminal.shows("history archived as", 1).await;
    terminal.types("/resume");
    terminal.shows("archive 1", 1).await;
    terminal.key("Enter");
    terminal.shows("Resumed:", 1).await;
    terminal.types("four");
    terminal.shows("Of four.", 1).await;
    let want = ["one", "Of one.", "three", "Of three.", "four"];
    assert_eq!(last_said(&model).await, want);
    terminal.key("C-d");
    terminal.shows("ended with 0", 1).await;
}
