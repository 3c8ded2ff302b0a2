//! Conversations are titled, found, exported, removed and restored; `top`; restarts.

use crate::rig::{Daemon, TestEnv, Tmux, eventually, has_tools, within};
use serde_json::Value;
use std::fs;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A home with conversations of two senders with the offline model.
async fn spoken() -> (TestEnv, Daemon) {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    env.run(&["--as", "me", "ask", "the door is Green"])
        .await
        .ok();
    env.run(&["--as", "me", "new"]).await.ok();
    env.run(&["--as", "me", "ask", "and the window"]).await.ok();
    env.run(&["--as", "you", "ask", "nothing of that"])
        .await
        .ok();
    (env, daemon)
}

#[tokio::test]
async fn conversations_are_found_by_title_and_content() {
    let (env, _daemon) = spoken().await;
    env.run(&["--as", "me", "conversations", "title", "Paint", "jobs"])
        .await
        .ok();
    let listed = env.run(&["conversations"]).await.ok();
    assert!(listed.contains("Paint jobs"), "{listed}");
    env.run(&["--as", "me", "conversations", "folder", "."])
        .await
        .ok();
    let folder = env.work.to_str().unwrap();
    let listed = env.run(&["--as", "me", "conversations", "--json"]).await;
    assert_eq!(lines(&listed.ok())[0]["cwd"], folder);
    let search = async |words: &[&str]| {
        let words = [&["--json", "conversations", "search"], words].concat();
        lines(&env.run(&words).await.ok())
    };
    // Archived messages are found, regardless of case and order.
    let found = search(&["green", "DOOR"]).await;
    assert!(!found.is_empty());
    for hit in &found {
        assert_eq!(
            (&hit["agent"], &hit["sender"]),
            (&"crab".into(), &"me".into())
        );
        let snippet = hit["snippet"].as_str().unwrap();
        assert!(snippet.contains("the door is Green"), "{hit}");
    }
    assert!(found.iter().any(|hit| hit["role"] == "user"), "{found:?}");
    let by_title = search(&["paint"]).await;
    assert_eq!(by_title[0]["title"], "Paint jobs");
    assert!(by_title[0]["index"].is_null(), "{by_title:?}");
    assert!(
        search(&["green", "window"]).await.is_empty(),
        "of one message"
    );
    let of_you = env
        .run(&["--as", "you", "conversations", "search", "green"])
        .await;
    assert_eq!(of_you.code, Some(0));
    assert!(of_you.stdout.is_empty(), "{of_you:?}");
    assert!(of_you.stderr.contains("no matches"), "{of_you:?}");
    env.run(&["conversations", "search", "  "]).await.fails(1);
}

#[tokio::test]
async fn unreadable_conversation_files_are_named() {
    let (env, daemon) = spoken().await;
    env.run(&["--as", "you", "conversations", "rm"]).await.ok();
    let sessions = env.home.join("sessions");
    let doctor = async || {
        let all = env.run(&["doctor", "--offline", "--json"]).await;
        let all = lines(&all.stdout).into_iter();
        let all = all.filter(|one| one["check"] == "logs");
        all.map(|one| format!("{} {}", one["state"], one["found"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(doctor().await, [r#""ok" "all conversations are readable""#]);
    daemon.terminate().await;
    let log = sessions.join("crab_me_1.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let broken = text.replacen("the door is Green\"", "the door", 1);
    assert_ne!(text, broken);
    fs::write(&log, broken).unwrap();
    fs::write(sessions.join("crab_other_1.jsonl"), "[nonsense\n").unwrap();
    fs::write(sessions.join("notes.txt"), "mine").unwrap();
    fs::write(sessions.join("trash/crab_you_1.jsonl"), "[nonsense\n").unwrap();
    let _daemon = env.daemon().await;
    let listed = env.run(&["conversations"]).await;
    let told = |said: &str, file: &str| said.contains(&format!("{file}: "));
    assert!(listed.stdout.contains("me"), "{listed:?}");
    for file in ["sessions/crab_other_1.jsonl", "sessions/notes.txt"] {
        assert!(told(&listed.stderr, file), "{listed:?}");
    }
    let trash = env.run(&["conversations", "trash"]).await;
    let file = "sessions/trash/crab_you_1.jsonl";
    assert!(told(&trash.stderr, file), "{trash:?}");
    assert!(!trash.stderr.contains("crab_other"), "{trash:?}");
    let found = doctor().await.join("\n");
    for part in [
        "\"warning\" \"sessions/crab_me_1.jsonl (crab for me): skipped an unreadable line",
        "\"error\" \"sessions/crab_other_1.jsonl: the line is not a JSON object; not listed",
        "\"warning\" \"sessions/notes.txt: not the log of a conversation",
        "\"error\" \"sessions/trash/crab_you_1.jsonl: the line is not a JSON object",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[tokio::test]
async fn export_has_the_archives() {
    let (env, _daemon) = spoken().await;
    let markdown = env.run(&["--as", "me", "export"]).await.ok();
    for part in [
        "# ",
        "- agent: crab\n",
        "- sender: me\n",
        "## user\n",
        "the door is Green",
    ] {
        assert!(markdown.contains(part), "{part:?} in {markdown}");
    }
    let json = env.run(&["--as", "me", "export", "--json"]).await.ok();
    assert_eq!(json.lines().count(), 1, "one value on a line: {json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sender"], "me");
    let messages = json["messages"].as_array().unwrap();
    let said = |words: &str| messages.iter().any(|m| m["content"] == words);
    assert!(
        said("the door is Green") && said("and the window"),
        "{json}"
    );
    let file = env.work.join("out.md");
    let export = ["--as", "me", "export", "-o", file.to_str().unwrap()];
    env.run(&export).await.ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), markdown);
    let again = env.run(&export).await.fails(1);
    assert!(again.contains("out.md"), "nothing is written over: {again}");
    env.run(&["--as", "nobody", "export"]).await.fails(1);
}

#[tokio::test]
async fn removed_conversation_is_restored_completely() {
    let (env, _daemon) = spoken().await;
    env.run(&["--as", "me", "conversations", "title", "Doors"])
        .await
        .ok();
    let before = env.run(&["--as", "me", "history", "--json"]).await.ok();
    let archives = env.run(&["--as", "me", "archives", "--json"]).await.ok();
    let removed = env.run(&["--as", "me", "conversations", "rm"]).await;
    assert!(
        removed.stderr.contains("conversations restore"),
        "{removed:?}"
    );
    env.run(&["--as", "me", "history"]).await.fails(1);
    assert!(!env.run(&["conversations"]).await.ok().contains("Doors"));
    let trash = lines(&env.run(&["conversations", "trash", "--json"]).await.ok());
    assert_eq!(trash.len(), 1);
    assert_eq!(trash[0]["title"], "Doors");
    let shown = env.run(&["conversations", "trash"]).await.ok();
    assert!(
        shown.contains(trash[0]["file_path"].as_str().unwrap()),
        "{shown}"
    );
    // A newer conversation of the pair must be removed first.
    env.run(&["--as", "me", "ask", "anew"]).await.ok();
    let refused = env.run(&["--as", "me", "conversations", "restore"]).await;
    assert!(refused.fails(1).contains("has a conversation"));
    env.run(&["--as", "me", "conversations", "rm"]).await.ok();
    let file = trash[0]["file_path"].as_str().unwrap();
    env.run(&["--as", "you", "conversations", "restore", "--file", file])
        .await
        .fails(1);
    env.run(&["--as", "me", "conversations", "restore", "--file", file])
        .await
        .ok();
    assert_eq!(
        env.run(&["--as", "me", "history", "--json"]).await.ok(),
        before
    );
    assert_eq!(
        env.run(&["--as", "me", "archives", "--json"]).await.ok(),
        archives
    );
    let listed = env.run(&["conversations"]).await.ok();
    assert!(listed.contains("Doors"), "{listed}");
    // The restored conversation continues.
    env.run(&["--as", "me", "ask", "and now"]).await.ok();
    let audit = env.run(&["audit", "--json"]).await.ok();
    assert!(audit.contains("conversation-restored"), "{audit}");
}

#[tokio::test]
async fn top_shows_a_run_and_restores_the_terminal() {
    if !has_tools("top_shows_a_run_and_restores_the_terminal", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let tmux = Tmux::sized(&env, "echo before; \"$CRABTALK\" top", 60, 20);
    tmux.shows("no active runs", 1).await;
    // The offline model asks and waits for the answer.
    let ask = ["--as", "me", "ask", "--wait", "/ask Which door?"];
    let asking = env.run(&ask);
    let watching = async {
        let screen = tmux.shows("asks 1", 1).await;
        assert!(screen.contains("me"), "{screen}");
        tmux.resize(40, 20);
        tmux.shows("no active", 0).await;
        env.run(&["--as", "me", "reply", "green"]).await.ok();
        tmux.shows("no active runs", 1).await;
        tmux.key("q");
        let screen = tmux.shows("ended with 0", 1).await;
        assert!(
            screen.contains("before") && !screen.contains("no active runs"),
            "{screen}"
        );
    };
    let (asked, ()) = tokio::join!(asking, watching);
    asked.ok();
}

#[tokio::test]
async fn restart_waits_for_runs_unless_forced() {
    let env = TestEnv::new();
    env.run(&["daemon", "start"]).await.ok();
    let pid = async || {
        let status = env.run(&["daemon", "status", "--json"]).await.ok();
        lines(&status)[0]["pid"].as_i64().unwrap()
    };
    let first = pid().await;
    let asking = env.run(&["--as", "me", "ask", "--wait", "/ask Which door?"]);
    let restarting = async {
        eventually("an ask", async || {
            let asks = env.run(&["asks"]).await.ok();
            asks.contains("Which door?").then_some(())
        })
        .await;
        let restart = env.run(&["daemon", "restart"]);
        let answering = async {
            assert_eq!(pid().await, first, "it waits");
            env.run(&["--as", "me", "reply", "green"]).await.ok();
        };
        tokio::join!(within("the restart", restart), answering).0
    };
    let (asked, restarted) = tokio::join!(asking, restarting);
    assert!(asked.ok().contains("green"));
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    let second = pid().await;
    assert_ne!(first, second);
    // Without waiting.
    let asking = env.run(&["--as", "me", "ask", "--wait", "/ask Which window?"]);
    let restarting = async {
        eventually("an ask", async || {
            let asks = env.run(&["asks"]).await.ok();
            asks.contains("Which window?").then_some(())
        })
        .await;
        env.run(&["daemon", "restart", "--now"]).await
    };
    let (_, restarted) = tokio::join!(asking, restarting);
    assert!(
        restarted.stderr.contains("1 run interrupted"),
        "{restarted:?}"
    );
    assert_ne!(second, pid().await);
    let listed = env.run(&["conversations"]).await;
    assert!(listed.stdout.contains("failed"), "{listed:?}");
    env.run(&["daemon", "stop"]).await.ok();
}
