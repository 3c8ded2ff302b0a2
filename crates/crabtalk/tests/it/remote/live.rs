//! The live chat, asks and approvals from elsewhere: as they are on the socket.

use super::{Elsewhere, PLAIN, TLS, token};
use crate::rig::{CHOICES, IDLE, ModelServer, Network, TestEnv, Tmux, Weather, has_tools};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::json;
use std::time::Duration;

/// What is left on the screen of a connection that was lost.
const BACK: &str = "Reconnected";

/// A daemon, a network before it, and another machine whose owner may act as `user`.
async fn far(model: &ModelServer, config: &str) -> (Elsewhere, Network, TestEnv) {
    let elsewhere = Elsewhere::speaking(model, config).await;
    let made = elsewhere.token(token("boss", "admin", &[])).await;
    let weather = Weather {
        latency: Duration::from_millis(20),
        seed: 11,
        cuts: Vec::new(),
    };
    let network = Network::start(made.listen[0].clone(), weather).await;
    let there = TestEnv::new();
    let address = format!("tcp://{}", network.address());
    let mut add = vec!["remote", "add", "home", &address];
    if !made.fingerprint.is_empty() {
        add.extend(["--fingerprint", &made.fingerprint]);
    }
    let added = there.run_with(&add, Some(&made.token)).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    (elsewhere, network, there)
}

/// An approval, a steer, and a connection that is lost in the middle of an answer.
async fn chat(config: &str) {
    let pieces = [
        "The beginning of it.\n\n",
        "The middle of it.\n\n",
        "The end of it.",
    ];
    let model = ModelServer::start(Script::openai([
        openai::text("Good day to you."),
        openai::tools("wait", &[("bash", json!({"command": "cat gate"}))]),
        openai::text("I heard you."),
        openai::pieces(&pieces).held_after(2),
    ]))
    .await;
    let (elsewhere, network, there) = far(&model, config).await;
    elsewhere.env.shell("mkfifo gate").await.ok();
    let work = elsewhere.env.work.display().to_string();
    let line = format!("\"$CRABTALK\" --connect home --as user --cwd '{work}'");
    let terminal = Tmux::sized(&there, &line, 100, 40);
    terminal.shows(IDLE, 1).await;
    terminal.types("good day");
    terminal.shows("Good day to you.", 1).await;

    terminal.types("open the gate");
    terminal.shows("crab wants to use bash", 1).await;
    terminal.shows(CHOICES, 1).await;
    terminal.types_half("y");
    terminal.shows("Enter confirms", 1).await;
    terminal.key("Enter");
    terminal.shows("Enter steers", 1).await;
    terminal.types("be brief");
    terminal.shows("steering: be brief", 1).await;
    elsewhere.env.shell("echo opened > gate").await.ok();
    terminal.shows("I heard you.", 1).await;
    terminal.shows(IDLE, 1).await;

    terminal.types("tell me all");
    terminal.shows("The beginning of it.", 1).await;
    network.cut_all();
    terminal.shows(BACK, 1).await;
    model.release().await;
    terminal.shows("The end of it.", 1).await;
    terminal.shows(IDLE, 1).await;
    terminal.key("C-d");
    let screen = terminal.shows("ended with 0", 1).await;
    for piece in pieces.into_iter().chain([BACK]) {
        assert_eq!(screen.matches(piece.trim()).count(), 1, "{screen}");
    }
    let order = [
        "\u{203a} good day",
        "  opened",
        "\u{203a} be brief",
        "I heard you.",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|text| screen.find(text)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}\n{screen}"
    );
    assert!(network.cut() >= 1);
    assert!(!there.home.join("daemon.sock").exists(), "none was started");
    let record = elsewhere.env.run(&["audit", "--json"]).await.ok();
    let allowed = record.lines().find(|line| line.contains("\"allowed\""));
    let allowed = allowed.unwrap_or_else(|| panic!("{record}"));
    assert!(
        allowed.contains("admin/boss") && allowed.contains("cat gate"),
        "{allowed}"
    );
}

#[tokio::test]
async fn the_live_chat_over_tcp_is_the_live_chat() {
    if has_tools(
        "the_live_chat_over_tcp_is_the_live_chat",
        &["tmux", "mkfifo"],
    ) {
        chat(PLAIN).await;
    }
}

#[tokio::test]
async fn the_live_chat_over_tls_is_the_live_chat() {
    if has_tools(
        "the_live_chat_over_tls_is_the_live_chat",
        &["tmux", "mkfifo"],
    ) {
        chat(TLS).await;
    }
}

#[tokio::test]
async fn a_question_at_the_terminal_is_asked_and_answered_from_elsewhere() {
    const NAME: &str = "a_question_at_the_terminal_is_asked_and_answered_from_elsewhere";
    if !has_tools(NAME, &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        openai::tools("t", &[("bash", json!({"command": "echo sum-$((40 + 2))"}))]),
        openai::text("It was run."),
    ]))
    .await;
    let (_elsewhere, _network, there) = far(&model, TLS).await;
    let line = "\"$CRABTALK\" --connect home --as user ask 'what is the sum?'";
    let terminal = Tmux::open(&there, line);
    terminal.shows("echo sum-$((40 + 2))", 1).await;
    terminal.shows("Allow", 1).await;
    terminal.types("y");
    let screen = terminal.shows("ended with 0", 1).await;
    assert!(screen.contains("It was run."), "{screen}");
}
