//! Projects and fresh starts on the command line (CONV-11).

use crate::rig::TestEnv;
use serde_json::Value;

fn repository(env: &TestEnv, path: &str) -> String {
    env.write(&format!("{path}/.git/HEAD"), "ref: refs/heads/main\n");
    let folder = env.user_home.join(path);
    let folder = folder.canonicalize().unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Senders of all conversations, with their folders.
async fn senders(env: &TestEnv) -> Vec<String> {
    let list = env.run(&["conversations", "--json"]).await.ok();
    let sender = |line: &str| {
        let info: Value = serde_json::from_str(line).unwrap();
        info["sender"].as_str().unwrap().to_owned()
    };
    let mut senders: Vec<String> = list.lines().map(sender).collect();
    senders.sort();
    senders
}

#[tokio::test]
async fn repositories_have_separate_conversations() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let house = repository(&env, "a/house");
    let other = repository(&env, "b/house");
    let ask = async |folder: &str, text: &str| {
        let asked = env.run(&["--cwd", folder, "ask", text]).await;
        asked.ok()
    };
    ask(&house, "paint the door").await;
    ask(&other, "mend the roof").await;
    env.run(&["ask", "outside"]).await.ok();
    assert_eq!(senders(&env).await, ["user", "user/house", "user/house-2"]);

    let history = async |words: &[&str]| {
        let words = [words, &["history"]].concat();
        env.run(&words).await.ok()
    };
    assert!(history(&["--cwd", &house]).await.contains("paint the door"));
    let there = history(&["--cwd", &other]).await;
    assert!(there.contains("mend the roof") && !there.contains("paint"));
    // By name, from any folder; an empty name uses no project.
    let named = history(&["--project", "house-2"]).await;
    assert!(named.contains("mend the roof"), "{named}");
    let none = history(&["--cwd", &house, "--project", ""]).await;
    assert!(none.contains("outside"), "{none}");
    let spoken = history(&["--cwd", &house, "--as", "user"]).await;
    assert!(spoken.contains("outside"), "{spoken}");

    // The list has all conversations with their folders, and can be filtered.
    let list = env.run(&["conversations"]).await.ok();
    assert!(
        list.contains("a/house") && list.contains("b/house"),
        "{list}"
    );
    let one = env
        .run(&["conversations", "--json", "--project", "house"])
        .await;
    assert_eq!(one.ok().lines().count(), 1);

    env.config("[cli]\nproject = \"off\"\n");
    let off = history(&["--cwd", &house]).await;
    assert!(off.contains("outside"), "{off}");

    let both = env.run(&["--project", "x", "--as", "y", "history"]).await;
    assert_eq!(both.code, Some(2), "{both:?}");
    let slash = env.run(&["--project", "a/b", "history"]).await;
    assert_eq!(slash.code, Some(2), "{slash:?}");
    assert!(slash.stderr.contains("without slashes"), "{slash:?}");
}

#[tokio::test]
async fn owners_stay_owners_in_projects() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let house = repository(&env, "house");
    env.write("house/plan.txt", "a red door");
    let read = "/tool read {\"path\":\"plan.txt\"}";
    let own = env.run(&["--cwd", &house, "ask", read]).await.ok();
    assert!(own.contains("a red door"), "{own}");
    // A topic belongs to its owner; a sender with one more segment does not.
    let topic = env.run(&["--cwd", &house, "-t", "x", "ask", read]).await;
    assert!(topic.ok().contains("a red door"));
    let words = ["--cwd", &house, "--as", "user/house/x/y", "ask", read];
    let stranger = env.run(&words).await;
    assert!(!stranger.stdout.contains("a red door"), "{stranger:?}");
    env.config("owners = [\"user\"]\n");
    env.run(&["daemon", "reload"]).await.ok();
    let narrowed = env.run(&["--cwd", &house, "ask", read]).await;
    assert!(!narrowed.stdout.contains("a red door\n\n"), "{narrowed:?}");
    assert_ne!(narrowed.stdout, own);
    env.config("owners = [\"us*\"]\n");
    let refused = env.run(&["daemon", "reload"]).await;
    assert!(
        refused.stderr.contains("for each further segment"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn new_archives_the_conversation() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    env.run(&["ask", "the passport lies in the blue tin"])
        .await
        .ok();
    let put_away = env.run(&["new"]).await;
    assert!(
        put_away.stderr.contains("archived as \"the passport lies"),
        "{put_away:?}"
    );
    put_away.ok();
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let again = env.run(&["new", "--json"]).await.ok();
    assert_eq!(again.trim(), "{\"archive\":\"\"}");
    // The model gets nothing of the archive.
    let answer = env.run(&["ask", "what do you see?"]).await.ok();
    assert!(answer.contains("1 message"), "{answer}");
    let archives = env.run(&["archives"]).await.ok();
    assert!(
        archives.contains("the passport lies in the blue tin"),
        "{archives}"
    );
    let shown = env.run(&["archives", "show", "1"]).await.ok();
    assert!(shown.contains("blue tin"), "{shown}");
    let found = env.run(&["search", "passport"]).await.ok();
    assert!(found.contains("blue tin"), "{found}");
    let history = env.run(&["history"]).await.ok();
    assert!(
        history.contains("--- older messages are archived"),
        "{history}"
    );
    let absent = env.run(&["--as", "nobody", "new"]).await;
    assert_eq!(absent.code, Some(1), "{absent:?}");
}
