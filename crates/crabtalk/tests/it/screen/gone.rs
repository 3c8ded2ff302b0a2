//! Messages to a daemon that died.

use super::shared::in_order;
use super::*;

/// A run that waits for a write to `gate`, and further replies.
fn held_by_a_command(then: Vec<Reply>) -> Script {
    let gate = openai::tools("wait", &[("bash", json!({"command": "cat gate"}))]);
    Script::openai([vec![gate], then].concat())
}

async fn world(model: &ModelServer) -> TestEnv {
    let env = TestEnv::with_model(model);
    env.agent("crab", "permissions: { bash: allow }");
    env.shell("mkfifo gate").await;
    env
}

#[tokio::test]
async fn steering_message_of_a_dead_run_is_shown_once() {
    let name = "steering_message_of_a_dead_run_is_shown_once";
    if !has_tools(name, &["tmux", "mkfifo"]) {
        return;
    }
    let script = held_by_a_command(vec![openai::text("The next answer.")]);
    let model = ModelServer::start(script).await;
    let env = world(&model).await;
    let daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 40);
    one.shows(IDLE, 1).await;
    one.types("begin");
    one.shows("bash cat gate", 1).await;
    let other = Tmux::sized(&env, CHAT, 80, 40);
    other.shows("bash cat gate", 1).await;
    one.types("be brief");
    one.shows("steering: be brief", 1).await;
    daemon.kill().await;
    one.shows("disconnected", 1).await;
    let _daemon = env.daemon().await;
    for chat in [&one, &other] {
        chat.shows("\u{203a} be brief", 1).await;
        chat.shows(IDLE, 1).await;
    }
    one.types("and now");
    let order = [
        "\u{203a} begin",
        "the run failed: the daemon stopped during",
        "\u{203a} be brief",
        "\u{203a} and now",
        "The next answer.",
    ];
    for chat in [&one, &other] {
        let screen = chat.shows(OVER, 1).await;
        in_order(&screen, &order);
        assert!(!screen.contains("interrupted:"), "{screen}");
        assert!(!screen.contains("steering:"), "{screen}");
    }
    let requests = model.requests().await;
    let asked = requests.last().unwrap().to_string();
    assert_eq!(asked.matches("be brief").count(), 1, "{asked}");
}

#[tokio::test]
async fn queued_messages_wait_for_another_daemon() {
    if !has_tools("queued_messages_wait_for_another_daemon", &["tmux"]) {
        return;
    }
    let answers = ["second", "third", "fourth"].map(|n| format!("The {n} answer."));
    let answers = answers.map(|text| openai::text(&text));
    let stalls = openai::pieces(&["Half of it\n\n", "and the rest"]).held_after(2);
    let script = [vec![stalls], answers.to_vec()].concat();
    let model = ModelServer::start(Script::openai(script)).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 40);
    one.shows(IDLE, 1).await;
    one.types("question one");
    one.shows("Half of it", 1).await;
    for question in ["question two", "question three", "question four"] {
        one.types_half(question);
        one.key("Tab");
        one.shows(&format!(": {question}"), 1).await;
    }
    daemon.kill().await;
    one.shows("waits for a daemon", 3).await;
    // Enter alone starts a daemon.
    one.key("Enter");
    let screen = one.shows("The fourth answer.", 1).await;
    let order = [
        "\u{203a} question one",
        "the run failed: the daemon stopped during",
        "\u{203a} question two",
        "The second answer.",
        "\u{203a} question three",
        "The third answer.",
        "\u{203a} question four",
        "The fourth answer.",
    ];
    in_order(&screen, &order);
    assert!(!screen.contains("interrupted:"), "{screen}");
    assert_eq!(model.requests().await.len(), 4);
    env.run(&["daemon", "stop"]).await.ok();
}
