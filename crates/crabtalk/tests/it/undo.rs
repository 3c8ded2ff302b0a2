//! Changes of runs are shown and undone: in the chat, by command, and remotely.

use crate::remote::{Elsewhere, PLAIN, token};
use crate::rig::{ModelServer, OVER, TestEnv, Tmux, has_tools};
use crabtalk_client::Client;
use crabtalk_proto::{ListChangesMsg, SendMsg, UndoMsg};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::json;

const ALLOWED: &str = "permissions: { bash: allow, write: allow, edit: allow }";

fn text(env: &TestEnv, name: &str) -> String {
    std::fs::read_to_string(env.work.join(name)).unwrap_or_default()
}

#[tokio::test]
async fn chat_shows_and_undoes_changes() {
    if !has_tools("chat_shows_and_undoes_changes", &["tmux", "git"]) {
        return;
    }
    let edit = json!({"path": "greeting", "old_string": "Helo", "new_string": "Hello"});
    let model = ModelServer::start(Script::openai([
        openai::tools(
            "both",
            &[
                ("edit", edit),
                (
                    "bash",
                    json!({"command": "mkdir made; echo new > made/file"}),
                ),
            ],
        ),
        openai::text("Both are done."),
        openai::tools(
            "more",
            &[("write", json!({"path": "greeting", "content": "Bye\n"}))],
        ),
        openai::text("It is written."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", ALLOWED);
    env.script("greeting", "Helo\n");
    env.shell("git init -q").await;
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, "\"$CRABTALK\" --project ''", 80, 24);
    terminal.shows("type a message", 1).await;
    terminal.types("/undo");
    terminal.shows("no run of this conversation has", 1).await;
    terminal.types("go");
    terminal.shows("Both are done.", 1).await;
    terminal.shows(OVER, 1).await;
    terminal.types("/diff");
    let screen = terminal.shows("run 1 changed 2 files", 1).await;
    let screen = match screen.contains("1 + new") {
        true => screen,
        false => terminal.shows("1 + new", 1).await,
    };
    assert!(screen.contains("1 - Helo"), "{screen}");
    assert!(screen.contains("created "), "{screen}");

    terminal.types("and");
    terminal.shows("It is written.", 1).await;
    terminal.shows(OVER, 2).await;
    terminal.types("/undo 1");
    let screen = terminal.shows("`/undo partly`", 1).await;
    assert!(screen.contains("kept: it was changed since"), "{screen}");
    assert_eq!(text(&env, "greeting"), "Bye\n");
    terminal.types("/undo");
    terminal.shows("run 2 reverted:", 1).await;
    terminal.types("/undo");
    terminal.shows("run 1 reverted:", 1).await;
    assert_eq!(text(&env, "greeting"), "Helo\n");
    assert!(!env.work.join("made").exists());
    terminal.key("C-d");
    terminal.shows("ended with 0", 1).await;
}

#[tokio::test]
async fn undo_command_has_a_dry_run_and_refuses_changed_files() {
    let env = TestEnv::new();
    env.agent("crab", ALLOWED);
    let _daemon = env.daemon().await;
    let ask = "/tool write {\"path\":\"made\",\"content\":\"one\\n\"}";
    env.run(&["ask", ask]).await.ok();
    assert_eq!(text(&env, "made"), "one\n");
    let would = env.run(&["undo", "--dry-run"]).await.ok();
    assert!(would.contains("run 1 would be reverted:"), "{would}");
    assert!(would.contains("would be removed"), "{would}");
    assert_eq!(text(&env, "made"), "one\n");
    let diff = env.run(&["diff"]).await.ok();
    assert!(diff.contains("+one"), "{diff}");
    // Later changes of other programs stay.
    std::fs::write(env.work.join("made"), "mine\n").unwrap();
    let refused = env.shell("\"$CRABTALK\" undo; echo $?").await.ok();
    assert!(refused.contains("kept: it was changed since"), "{refused}");
    assert!(refused.ends_with("1\n"), "{refused}");
    assert_eq!(text(&env, "made"), "mine\n");
    std::fs::write(env.work.join("made"), "one\n").unwrap();
    env.run(&["undo"]).await.ok();
    assert!(!env.work.join("made").exists());
    env.run(&["undo"]).await.fails(1);
}

/// The code of a refused undo, or 0.
async fn undo(client: &Client, sender: &str) -> u32 {
    let request = UndoMsg {
        sender: sender.into(),
        ..UndoMsg::default()
    };
    let answer = client.call(request).await;
    answer.map_or_else(|error| error.code().unwrap_or(1), |_| 0)
}

#[tokio::test]
async fn remote_undo_needs_to_act_for_an_owner() {
    let elsewhere = Elsewhere::with(PLAIN).await;
    elsewhere.env.agent("crab", ALLOWED);
    elsewhere.env.run(&["daemon", "reload"]).await.ok();
    let owner = elsewhere.owner();
    let made = elsewhere.env.work.join("made");
    let ask = format!(
        "/tool write {{\"path\":\"{}\",\"content\":\"one\"}}",
        made.display()
    );
    let say = SendMsg {
        sender: Some("user".into()),
        content: ask,
        ..SendMsg::default()
    };
    owner.call(say).await.unwrap();
    let guest = elsewhere.talker("guest", &["*"]).await;
    let operator = elsewhere.client(token("ops", "operate", &["user"])).await;
    let stranger = elsewhere.client(token("boss", "admin", &["tg:*"])).await;
    let admin = elsewhere.client(token("chief", "admin", &[])).await;
    assert_eq!(undo(&guest, "user").await, 403);
    assert_eq!(undo(&operator, "user").await, 403);
    assert_eq!(undo(&stranger, "user").await, 404);
    assert_eq!(undo(&stranger, "tg:1").await, 403);
    assert!(made.exists());
    let list = ListChangesMsg {
        sender: "user".into(),
        ..ListChangesMsg::default()
    };
    let error = guest.call(list.clone()).await.unwrap_err();
    assert_eq!(error.code(), Some(403));
    assert_eq!(admin.call(list).await.unwrap().runs.len(), 1);
    assert_eq!(undo(&admin, "user").await, 0);
    assert!(!made.exists());
}
