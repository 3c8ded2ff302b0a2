//! Other clients, guests, and a daemon that dies.

use super::*;

#[tokio::test]
async fn guests_and_other_clients_are_shown() {
    if !has_tools("guests_and_other_clients_are_shown", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("reviewer", "description: looks twice");
    let daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("good day");
    terminal.shows("told me: good day", 1).await;
    terminal.shows(OVER, 1).await;
    // A prefix completes the name.
    terminal.types_half("@rev");
    terminal.shows("a guest answers once", 1).await;
    terminal.key("Tab");
    terminal.types("is it right?");
    let screen = terminal.shows("\u{25cf} reviewer\n", 1).await;
    assert!(
        screen.contains("\u{203a} @reviewer is it right?\n"),
        "{screen}"
    );
    terminal.shows("is it right?", 2).await;

    let answer = env.run(&["ask", "from elsewhere"]).await;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let screen = terminal.shows("\u{203a} from elsewhere\n", 1).await;
    assert!(screen.contains("  (from another client)"), "{screen}");
    terminal.shows("from elsewhere", 2).await;

    // The chat reconnects to a restarted daemon.
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    terminal.shows("the daemon was restarted", 1).await;
    terminal.types("still there?");
    terminal.shows("told me: still there?", 1).await;
}
