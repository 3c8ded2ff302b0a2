//! Approvals, and input that must not answer them.

use super::*;
use crate::terminal::{corrected, correcting};

#[tokio::test]
async fn change_is_approved_and_command_denied() {
    if !has_tools("change_is_approved_and_command_denied", &["tmux"]) {
        return;
    }
    let (_model, env) = correcting().await;
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("fix it");
    let screen = terminal.shows(CHOICES, 1).await;
    assert!(
        screen.contains("\u{250f}\u{2501} crab wants to use edit\n"),
        "{screen}"
    );
    assert!(
        screen.contains("\u{2503}    1 - Helo\n\u{2503}    1 + Hello\n"),
        "{screen}"
    );
    terminal.types_half("perhaps");
    terminal.shows("choose y, a or n", 1).await;
    terminal.types_half("y");
    terminal.shows("Enter confirms", 1).await;
    terminal.key("Enter");
    let screen = terminal.shows("crab wants to use bash", 1).await;
    assert!(
        screen.contains("\u{25cf} edit greeting \u{b7}") && screen.contains("\n     1 + Hello\n"),
        "{screen}"
    );
    terminal.shows(CHOICES, 1).await;
    terminal.types_half("n");
    terminal.shows("Reason (optional)", 1).await;
    terminal.types("it is precious");
    let screen = terminal.shows("nothing removed.", 1).await;
    assert!(screen.contains("\u{2717} bash rm -r precious"), "{screen}");
    assert!(!screen.contains('\u{2503}'), "the frame goes: {screen}");
    corrected(&env).await;
}

#[tokio::test]
async fn earlier_keys_approve_nothing() {
    if !has_tools("earlier_keys_approve_nothing", &["tmux"]) {
        return;
    }
    let touch = openai::tools("t", &[("bash", json!({"command": "touch made"}))]);
    let script = [touch.held_after(0), openai::text("It was denied.")];
    let model = ModelServer::start(Script::openai(script)).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("make it");
    terminal.shows("Enter steers", 1).await;
    // A key before the question.
    terminal.types_half("y");
    terminal.shows("\u{203a} y\n", 1).await;
    // The question and another key arrive while the chat is stopped.
    let chat = terminal.program().await;
    kill_process(chat, Signal::STOP).unwrap();
    model.release().await;
    eventually("a question", async || {
        let mut connection = env.connect().await;
        let asks = connection.list_asks(ListAsksMsg::default()).await;
        (!asks.unwrap().asks.is_empty()).then_some(())
    })
    .await;
    terminal.types_half("y");
    kill_process(chat, Signal::CONT).unwrap();
    let screen = terminal.shows(CHOICES, 1).await;
    assert!(!screen.contains("Enter confirms"), "{screen}");
    terminal.key("Enter");
    let screen = terminal.shows("choose first", 1).await;
    assert!(!screen.contains("\u{25cf} bash"), "{screen}");
    assert!(!env.work.join("made").exists());
    terminal.types_half("n");
    terminal.shows("Reason (optional)", 1).await;
    terminal.key("Enter");
    let screen = terminal.shows("It was denied.", 1).await;
    assert!(
        screen.contains("\u{203a} yy"),
        "what was typed is not lost: {screen}"
    );
    assert!(!env.work.join("made").exists());
}
