//! The todo list and the members of a run.

use super::*;

#[tokio::test]
async fn todo_list_and_members_change_in_place() {
    if !has_tools("todo_list_and_members_change_in_place", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "members: [ada, bob]");
    env.agent("ada", "description: looks");
    env.agent("bob", "description: digs");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    let list = json!({"items": [
        {"text": "look", "status": "done"}, {"text": "dig", "status": "in_progress"},
    ]});
    let tasks = json!({"tasks": [
        {"agent": "ada", "task": "/ask Colour?"}, {"agent": "bob", "task": "/ask Size?"},
    ]});
    terminal.types(&format!("/tool todo {list} /tool delegate {tasks}"));
    terminal.shows("waiting for you", 2).await;
    let screen = terminal.shows("\u{25b8} dig", 1).await;
    assert!(
        screen.contains("! ada \u{b7}") && screen.contains("! bob \u{b7}"),
        "{screen}"
    );
    terminal.shows("Enter answers", 1).await;
    terminal.types("red");
    terminal.shows("\u{2713} ", 2).await;
    terminal.shows("Enter answers", 1).await;
    terminal.types("large");
    let screen = terminal.shows(OVER, 1).await;
    assert_eq!(
        screen.matches("Todo \u{b7} 1 of 2 done").count(),
        1,
        "{screen}"
    );
    assert!(!screen.contains("Members"), "{screen}");
}
