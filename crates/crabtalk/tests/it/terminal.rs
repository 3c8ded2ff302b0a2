//! Approvals at the controlling terminal, and the chat, on a real terminal.

use crate::rig::{ModelServer, TestEnv, Tmux, entries, has_tools};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::json;

/// A file with a typo, and a model that fixes it and then tries to remove another file.
pub(crate) async fn correcting() -> (ModelServer, TestEnv) {
    let edit = json!({"path": "greeting", "old_string": "Helo", "new_string": "Hello"});
    let model = ModelServer::start(Script::openai([
        openai::tools("fix", &[("edit", edit)]),
        openai::tools("rm", &[("bash", json!({"command": "rm -r precious"}))]),
        openai::text("One letter added, nothing removed."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.script("greeting", "Helo\n");
    (model, env)
}

/// Asserts that the edit was allowed and the removal denied with a reason; returns the
/// question.
pub(crate) async fn corrected(env: &TestEnv) -> String {
    let file = std::fs::read_to_string(env.work.join("greeting")).unwrap();
    assert_eq!(file, "Hello\n");
    let mut history = entries(env, "crab", "user").await;
    assert!(history[4].content.contains("it is precious"), "{history:?}");
    history.swap_remove(0).content
}

#[tokio::test]
async fn approvals_use_the_terminal_when_stdin_is_a_pipe() {
    if !has_tools("approvals_use_the_terminal_when_stdin_is_a_pipe", &["tmux"]) {
        return;
    }
    let (model, env) = correcting().await;
    let _daemon = env.daemon().await;
    let terminal = Tmux::open(&env, "echo 'the diff' | \"$CRABTALK\" ask 'fix it'");

    let screen = terminal.shows("Allow this?", 1).await;
    assert!(screen.contains("crab wants to use edit:"), "{screen}");
    assert!(screen.contains("greeting"), "{screen}");
    assert!(
        screen.contains("the change (5 lines):\n    --- before\n    +++ after\n"),
        "{screen}"
    );
    assert!(screen.contains("\n    -Helo\n    +Hello\n"), "{screen}");
    terminal.types("perhaps");
    terminal.shows("Please answer y, a", 1).await;
    terminal.types("y");
    let screen = terminal.shows("Allow this?", 2).await;
    assert!(
        screen.contains("crab wants to use bash:\n    rm -r precious"),
        "{screen}"
    );
    terminal.types("n: it is precious");
    let screen = terminal.shows("ended with 0", 1).await;
    assert!(
        screen.contains("One letter added, nothing removed."),
        "{screen}"
    );
    let asked = corrected(&env).await;
    assert_eq!(asked, "fix it\n\nthe diff\n");
    assert_eq!(model.requests().await.len(), 3);
}

#[tokio::test]
async fn dumb_terminal_gets_a_plain_chat() {
    if !has_tools("dumb_terminal_gets_a_plain_chat", &["tmux"]) {
        return;
    }
    let mut env = TestEnv::new();
    // CI makes some libraries write colours.
    env.set("CI", "true");
    let _daemon = env.daemon().await;
    let line = "read begin; TERM=dumb \"$CRABTALK\" --wrong; TERM=dumb \"$CRABTALK\"";
    let terminal = Tmux::open(&env, line);
    let said = env.root().join("said");
    terminal.record(&said);
    terminal.types("");
    terminal.shows("unexpected argument", 1).await;
    terminal.shows("crabtalk>", 1).await;
    terminal.types("good day");
    terminal.shows("You told me: good day", 1).await;
    // Early input is echoed before the prompt.
    terminal.shows("\ncrabtalk>", 2).await;
    terminal.types("/tool bash {\"command\":\"echo sum-$((40 + 2))\"}");
    let screen = terminal.shows("Allow this?", 1).await;
    assert!(screen.contains("crab wants to use bash:"), "{screen}");
    terminal.types("yes");
    terminal.shows("sum-42", 1).await;
    terminal.shows("\ncrabtalk>", 3).await;
    terminal.types("/ask Which way?");
    terminal.shows("crab asks (Question): Which way?", 1).await;
    terminal.types("northwards");
    terminal.shows("{\"Which way?\":\"northwards\"}", 1).await;
    terminal.shows("\ncrabtalk>", 4).await;
    terminal.types("/slow 60000 never said");
    terminal
        .shows("never said\ncrab answers with offline", 1)
        .await;
    terminal.key("C-c");
    terminal.shows("the run was cancelled\ncrabtalk>", 1).await;
    terminal.types("/quit");
    terminal.shows("ended with 0", 1).await;
    let said = terminal.recorded(&said, "ended with 0").await;
    assert!(!said.contains('\x1b'), "on a dumb terminal: {said:?}");
}

#[tokio::test]
async fn earlier_input_never_answers_a_question() {
    if !has_tools(
        "earlier_input_never_answers_a_question",
        &["tmux", "mkfifo"],
    ) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let gate = env.root().join("gate");
    let line = format!(
        "mkfifo '{0}'; echo waiting; cat '{0}'; \"$CRABTALK\" ask '/tool bash {{\"command\":\"touch made\"}}'",
        gate.display()
    );
    let terminal = Tmux::open(&env, &line);
    terminal.shows("waiting", 1).await;
    // Queues one and a half lines in the terminal.
    terminal.types("y");
    terminal.types_half("y");
    terminal.shows("y\ny", 1).await;
    tokio::task::spawn_blocking(move || std::fs::write(gate, "").unwrap())
        .await
        .unwrap();
    terminal.shows("Allow this?", 1).await;
    terminal.types("perhaps");
    let screen = terminal.shows("Please answer y, a", 1).await;
    assert!(!screen.contains("< bash"), "{screen}");
    terminal.types("n");
    let screen = terminal.shows("ended with 0", 1).await;
    assert!(screen.contains("denied by the user"), "{screen}");
    assert!(!env.work.join("made").exists());
}
