//! `/switch` in the chat.

use crate::rig::{OVER, TestEnv, Tmux, entries, eventually, has_tools};

/// Two conversations of the user, one of another sender, and an archive.
async fn conversations(env: &TestEnv) {
    for (sender, text) in [
        ("user/roof", "the tiles are loose"),
        ("tg:1", "the loose ends of a stranger"),
    ] {
        env.run(&["ask", "--as", sender, text]).await.ok();
    }
    env.run(&["new", "--as", "user/roof"]).await.ok();
    env.run(&["ask", "--as", "user/roof", "the gutter leaks"])
        .await
        .ok();
    env.run(&["ask", "--as", "user/garden", "the roses are red"])
        .await
        .ok();
}

#[tokio::test]
async fn switch_finds_conversations_and_archives() {
    if !has_tools("switch_finds_conversations_and_archives", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    conversations(&env).await;
    for (columns, rows) in [(80, 24), (40, 24)] {
        let terminal = Tmux::sized(&env, "\"$CRABTALK\" --as user", columns, rows);
        terminal.shows("type a message", 1).await;
        terminal.types("/switch");
        let screen = terminal.shows("crab as user/garden", 1).await;
        assert!(!screen.contains("tg:1"), "a stranger's: {screen}");
        terminal.types_half("gutter");
        terminal.shows("switch to: gutter", 1).await;
        terminal.shows("\u{203a} crab as user/roof", 1).await;
        terminal.key("Enter");
        let screen = terminal.shows("switched to", 1).await;
        assert!(!screen.contains("switch to:"), "{screen}");
        // Narrow screens wrap it.
        let words: Vec<&str> = screen.split_whitespace().collect();
        assert!(words.join(" ").contains("to crab as user/roof"), "{screen}");
        terminal.shows("\u{203a} the gutter leaks", 1).await;
        let said = format!("seen at {columns}");
        terminal.types(&said);
        // The screen also shows that earlier runs have ended.
        let arrives = async || {
            let history = entries(&env, "crab", "user/roof").await;
            let there = history.iter().any(|entry| entry.content == said);
            there.then_some(())
        };
        eventually("what was said", arrives).await;
        terminal.shows(OVER, 1).await;

        terminal.types("/switch archive");
        terminal.shows("archive 1", 1).await;
        terminal.key("Enter");
        terminal.shows("this is an archive", 1).await;
        terminal.shows("\u{203a} the tiles are loose", 2).await;
        terminal.types("/switch nowhere");
        terminal.shows("nothing fits", 1).await;
        terminal.key("Escape");
        terminal.shows("type a message", 1).await;
        terminal.key("C-d");
        let screen = terminal.shows("ended with 0", 1).await;
        let widest = screen.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{screen}");
    }
}
