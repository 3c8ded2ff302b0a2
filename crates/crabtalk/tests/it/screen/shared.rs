//! One conversation in several chats, with lost daemons and connections.

use super::*;

/// Asserts that each text is on the screen once, in this order.
#[track_caller]
pub(super) fn in_order(screen: &str, all: &[&str]) {
    let mut places = Vec::new();
    for text in all {
        assert_eq!(screen.matches(text).count(), 1, "{text:?}\n{screen}");
        places.extend(screen.find(text));
    }
    assert!(places.is_sorted(), "{all:?}\n{screen}");
}

#[tokio::test]
async fn chats_show_the_same_conversation_after_a_crash() {
    if !has_tools("chats_show_the_same_conversation_after_a_crash", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        openai::text("The first answer."),
        openai::pieces(&["Half of it\n\n", "and the rest"]).held_after(2),
        openai::text("The second answer."),
        openai::text("The third answer."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 40);
    one.shows(IDLE, 1).await;
    one.types("question one");
    one.shows(OVER, 1).await;
    let other = Tmux::sized(&env, CHAT, 80, 40);
    other.shows("The first answer.", 1).await;
    one.types("question two");
    for chat in [&one, &other] {
        chat.shows("Half of it", 1).await;
    }
    daemon.kill().await;
    for chat in [&one, &other] {
        chat.shows("disconnected", 1).await;
    }
    other.types("question three");
    for chat in [&one, &other] {
        chat.shows("The second answer.", 1).await;
        chat.shows(IDLE, 1).await;
    }
    one.types("question four");
    let third = Tmux::sized(&env, CHAT, 80, 40);
    let all = [
        "\u{203a} question one",
        "The first answer.",
        "\u{203a} question two",
        "Half of it",
        "\u{203a} question three",
        "The second answer.",
        "\u{203a} question four",
        "The third answer.",
    ];
    for chat in [&one, &other] {
        in_order(&chat.shows("The third answer.", 1).await, &all);
    }
    // The partial answer is not in the history.
    let kept = [
        "\u{203a} question one",
        "The first answer.",
        "\u{203a} question two",
        "\u{203a} question three",
        "The second answer.",
        "\u{203a} question four",
        "The third answer.",
    ];
    let screen = third.shows("The third answer.", 1).await;
    in_order(&screen, &kept);
    assert!(screen.contains("the daemon stopped during"), "{screen}");
    env.run(&["daemon", "stop"]).await.ok();
}

#[tokio::test]
async fn reconnected_chat_shows_missed_messages() {
    if !has_tools("reconnected_chat_shows_missed_messages", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        openai::text("The first answer."),
        openai::pieces(&["Half of it\n\n", "and the rest"]).held_after(2),
        openai::text("The third answer."),
        openai::text("The fourth answer."),
        openai::pieces(&["The fifth ", "answer."]).held_after(2),
        openai::text("The sixth answer."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let relay = Relay::start(&env);
    let line = format!("CRABTALK_HOME='{}' {CHAT}", relay.home().display());
    let one = Tmux::sized(&env, &line, 80, 40);
    one.shows(IDLE, 1).await;
    one.types("question one");
    one.shows(OVER, 1).await;
    one.types("question two");
    one.shows("Half of it", 1).await;
    relay.shut();
    one.shows("disconnected", 1).await;
    model.release().await;
    for question in ["question three", "question four"] {
        env.run(&["ask", question]).await.ok();
    }
    // A run that continues after the reconnect.
    let mut client = env.connect().await;
    let last = StreamMsg {
        content: "question five".into(),
        ..StreamMsg::default()
    };
    let mut run = std::pin::pin!(client.stream(last));
    loop {
        let event = run.next().await.unwrap().unwrap();
        if matches!(event.event, Some(stream_event::Event::Chunk(_))) {
            break;
        }
    }
    relay.open();
    one.shows("The fifth", 1).await;
    model.release().await;
    let screen = one.shows("The fifth answer.", 1).await;
    in_order(
        &screen,
        &[
            "\u{203a} question one",
            "The first answer.",
            "\u{203a} question two",
            "Events were lost",
            "and the rest",
            "\u{203a} question three",
            "The third answer.",
            "\u{203a} question four",
            "The fourth answer.",
            "\u{203a} question five",
            "The fifth answer.",
        ],
    );
    // Without an active run.
    one.shows(IDLE, 1).await;
    relay.shut();
    one.shows("disconnected", 1).await;
    env.run(&["ask", "question six"]).await.ok();
    relay.open();
    let screen = one.shows("The sixth answer.", 1).await;
    in_order(&screen, &["The fifth answer.", "question six", "The sixth"]);
}
