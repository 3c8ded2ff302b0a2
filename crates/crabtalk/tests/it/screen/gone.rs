//! What a person said to a daemon that died.

use super::shared::in_order;
use super::*;

/// A run that a command holds until somebody writes into `gate`, and what comes then.
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
async fn words_to_a_run_that_died_with_its_daemon_stand_once_in_their_place() {
    let name = "words_to_a_run_that_died_with_its_daemon";
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
        "the run failed: the daemon stopped while",
        "\u{203a} be brief",
        "\u{203a} and now",
        "The next answer.",
    ];
    for chat in [&one, &other] {
        let screen = chat.shows(OVER, 1).await;
        in_order(&screen, &order);
        assert!(!screen.contains("cut off earlier"), "{screen}");
        assert!(!screen.contains("steering:"), "{screen}");
    }
    let requests = model.requests().await;
    let asked = requests.last().unwrap().to_string();
    assert_eq!(asked.matches("be brief").count(), 1, "{asked}");
}

#[tokio::test]
async fn words_that_a_run_read_unheard_before_its_daemon_died_are_shown() {
    let name = "words_that_a_run_read_unheard";
    if !has_tools(name, &["tmux", "mkfifo"]) {
        return;
    }
    let stalls = openai::pieces(&["It begins", " and goes on"]).held_after(1);
    let model = ModelServer::start(held_by_a_command(vec![stalls])).await;
    let env = world(&model).await;
    let daemon = env.daemon().await;
    let relay = Relay::start(&env);
    let line = format!("CRABTALK_HOME='{}' {CHAT}", relay.home().display());
    let one = Tmux::sized(&env, &line, 80, 40);
    one.shows(IDLE, 1).await;
    one.types("begin");
    one.shows("bash cat gate", 1).await;
    one.types("be brief");
    one.shows("steering: be brief", 1).await;
    relay.shut();
    one.shows("disconnected", 1).await;
    env.shell("echo opened > gate").await;
    eventually("a request that has what was said", async || {
        let requests = model.requests().await;
        (requests.len() > 1).then_some(())
    })
    .await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    relay.open();
    let failed = "the run failed: the daemon stopped while";
    let screen = one.shows(failed, 1).await;
    in_order(&screen, &["\u{203a} begin", "\u{203a} be brief", failed]);
    assert!(!screen.contains("steering:"), "{screen}");
}

#[tokio::test]
async fn messages_behind_a_run_wait_for_another_daemon_and_say_so() {
    if !has_tools("messages_behind_a_run_wait_for_another", &["tmux"]) {
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
    // Enter alone starts one.
    one.key("Enter");
    let screen = one.shows("The fourth answer.", 1).await;
    let order = [
        "\u{203a} question one",
        "the run failed: the daemon stopped while",
        "\u{203a} question two",
        "The second answer.",
        "\u{203a} question three",
        "The third answer.",
        "\u{203a} question four",
        "The fourth answer.",
    ];
    in_order(&screen, &order);
    assert!(!screen.contains("cut off earlier"), "{screen}");
    assert_eq!(model.requests().await.len(), 4);
    env.run(&["daemon", "stop"]).await.ok();
}

#[tokio::test]
async fn what_is_known_of_a_daemon_that_is_gone_is_known_on() {
    if !has_tools("what_is_known_of_a_daemon_that_is_gone", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "description: one");
    env.agent("ada", "description: other");
    let daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 24);
    one.shows("crab \u{b7} ", 1).await;
    daemon.kill().await;
    one.shows("disconnected", 1).await;
    // A command that begins asks what there is to complete it with.
    one.types_half("/skills");
    one.shows("\u{203a} /skills", 1).await;
    one.key("Enter");
    one.shows("! no daemon listens", 1).await;
    one.types("/agent");
    let screen = one.shows("You talk to", 1).await;
    assert!(
        screen.contains("You talk to crab. The agents are"),
        "{screen}"
    );
}

#[tokio::test]
async fn nobody_leaves_what_is_not_sent_without_a_word() {
    if !has_tools("nobody_leaves_what_is_not_sent", &["tmux"]) {
        return;
    }
    let stalls = openai::pieces(&["Half of it\n\n", "and the rest"]).held_after(2);
    let model = ModelServer::start(Script::openai([stalls])).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: one");
    env.agent("ada", "description: other");
    let daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 24);
    one.shows("crab \u{b7} ", 1).await;
    one.types("question one");
    one.shows("Half of it", 1).await;
    one.types_half("question two");
    one.key("Tab");
    one.shows("next: question two", 1).await;
    daemon.kill().await;
    one.shows("waits for a daemon, Enter starts one: question two", 1)
        .await;
    one.types("/agent ada");
    one.shows("! what you said here is not sent yet", 1).await;
    one.shows("waits for a daemon, Enter", 1).await;
    one.key("C-d");
    let screen = one.shows("ended with 0", 1).await;
    assert!(screen.contains("! not sent: question two\n"), "{screen}");
}
