//! Completion and references.

use super::*;

#[tokio::test]
async fn menu_filters_and_footer_names_the_keys() {
    if !has_tools("menu_filters_and_footer_names_the_keys", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types_half("/");
    terminal.shows("1 of ", 1).await;
    terminal.types_half("stat");
    let screen = terminal.shows("Enter runs", 1).await;
    assert!(screen.contains("show model, mode"), "{screen}");
    terminal.key("Enter");
    terminal.shows("session file", 1).await;
    // Enter must not run this match in the middle of a name: it would revert files.
    terminal.types_half("/ndo");
    terminal.shows("Enter inserts", 1).await;
    terminal.key("Enter");
    terminal.shows("\u{203a} /undo\n", 1).await;
    terminal.key("C-c");
    terminal.types_half("/mode");
    terminal.shows("Enter sends", 1).await;
    terminal.key("Down");
    terminal.shows("2 of 2", 1).await;
    terminal.key("Tab");
    terminal.shows("\u{203a} /model\n", 1).await;
}

#[tokio::test]
async fn files_complete_and_unknown_names_are_reported() {
    if !has_tools("files_complete_and_unknown_names", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([openai::text("I see it.")])).await;
    let env = TestEnv::with_model(&model);
    std::fs::create_dir_all(env.work.join("src/deep")).unwrap();
    env.script("src/deep/parser_notes.txt", "a note\n");
    env.script("ignored.txt", "");
    env.script(".gitignore", "ignored.txt\n");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types_half("look at @pnotes");
    terminal.shows("@src/deep/parser_notes.txt", 1).await;
    terminal.key("Enter");
    terminal
        .shows("\u{203a} look at @src/deep/parser_notes.txt", 1)
        .await;
    terminal.types_half("and @fou.c");
    let styled = eventually("a marked reference", async || {
        let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
        screen.contains("31m@fou.c").then_some(screen)
    })
    .await;
    assert!(!styled.contains("31m@src"), "{styled}");
    terminal.key("Enter");
    terminal.shows("@fou.c matches no file or agent", 1).await;
    assert_eq!(model.requests().await.len(), 0, "nothing is sent");
    terminal.key("Enter");
    terminal.shows("I see it.", 1).await;
    let asked = model.requests().await[0].to_string();
    assert!(asked.contains("a note"), "{asked}");
}
