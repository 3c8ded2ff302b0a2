//! Other clients, guests and a daemon that dies.

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

#[tokio::test]
async fn each_chat_reports_a_new_conversation_once() {
    if !has_tools("each_chat_reports_a_new_conversation_once", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let one = Tmux::sized(&env, CHAT, 80, 24);
    one.shows(IDLE, 1).await;
    one.types("good day");
    one.shows("told me: good day", 1).await;
    let other = Tmux::sized(&env, CHAT, 80, 24);
    other.shows("told me: good day", 1).await;

    other.types("/new");
    let archived = "history archived as \"good day\"";
    for chat in [&one, &other] {
        chat.shows(archived, 1).await;
    }
    one.types("good night");
    for chat in [&one, &other] {
        let screen = chat.shows("told me: good night", 1).await;
        assert_eq!(screen.matches(archived).count(), 1, "{screen}");
    }
}

#[tokio::test]
async fn chat_that_joins_a_run_shows_each_message_once() {
    if !has_tools(
        "chat_that_joins_a_run_shows_each_message_once",
        &["tmux", "mkfifo"],
    ) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        openai::text("The first answer."),
        openai::tools("wait", &[("bash", json!({"command": "cat gate"}))]),
        openai::text("The second answer."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    env.shell("mkfifo gate").await;
    let work = env.work.to_str().unwrap().to_owned();
    let say = |words: &str| StreamMsg {
        content: words.into(),
        cwd: Some(work.clone()),
        ..StreamMsg::default()
    };
    stream_to_end(&env, say("good day")).await;
    let mut other = env.connect().await;
    let mut run = std::pin::pin!(other.stream(say("go to the gate")));
    loop {
        let event = run.next().await.unwrap().unwrap();
        if matches!(event.event, Some(stream_event::Event::ToolStart(_))) {
            break;
        }
    }
    let terminal = Tmux::sized(&env, CHAT, 80, 30);
    terminal.shows("bash cat gate", 1).await;
    env.shell("echo opened > gate").await;
    let screen = terminal.shows("The second answer.", 1).await;
    for once in [
        "\u{203a} good day",
        "The first answer.",
        "\u{203a} go to the gate",
        "bash cat gate",
        "The second answer.",
    ] {
        assert_eq!(screen.matches(once).count(), 1, "{once}\n{screen}");
    }
    assert!(
        screen.find("The first") < screen.find("go to the gate"),
        "{screen}"
    );
}

#[tokio::test]
async fn message_to_a_dead_daemon_starts_another_one() {
    if !has_tools("message_to_a_dead_daemon_starts_another_one", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 40);
    terminal.shows(IDLE, 1).await;
    terminal.types("good day");
    terminal.shows("told me: good day", 1).await;
    terminal.shows(OVER, 1).await;
    // Without an active run.
    daemon.kill().await;
    terminal.shows("disconnected", 1).await;
    terminal.types("are you there?");
    terminal.shows("told me: are you there?", 1).await;
    terminal.shows(IDLE, 1).await;
    // During a run, as a steering message.
    terminal.types("/slow 60000 it begins");
    terminal.shows("Enter steers", 1).await;
    terminal.shows("  I", 1).await;
    let pid = std::fs::read_to_string(env.home.join("run/daemon.pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    terminal.shows("disconnected", 1).await;
    terminal.types("and now?");
    let screen = terminal.shows("told me: and now?", 1).await;
    // The partial answer, the message and its answer are in order.
    let places = ["  I\n", "\u{203a} and now?\n", "\n  I am the offline"];
    let places = places.map(|text| screen.rfind(text).expect(text));
    assert!(places.is_sorted(), "{screen}");
    env.run(&["daemon", "stop"]).await.ok();
}
