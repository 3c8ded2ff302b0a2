//! An answer during streaming, and actions on its run.

use super::*;

#[tokio::test]
async fn answer_streams_as_markdown_at_every_size() {
    if !has_tools("answer_streams_as_markdown_at_every_size", &["tmux"]) {
        return;
    }
    let sizes = [(80, 24), (40, 24)];
    let model = ModelServer::start(Script::openai(sizes.map(|_| openai::pieces(TABLE)))).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    for (columns, rows) in sizes {
        // Each size has its own conversation.
        let line = format!("{CHAT} --as user/{columns}");
        let terminal = Tmux::sized(&env, &line, columns, rows);
        terminal.shows(IDLE, 1).await;
        terminal.types("good day");
        terminal.shows("The end.", 1).await;
        terminal.shows(OVER, 1).await;
        terminal.key("C-d");
        let screen = terminal.shows("ended with 0", 1).await;
        assert!(
            screen.contains("\u{203a} good day\n\n  Results\n\n  Some bold words"),
            "{screen}"
        );
        assert!(
            screen.contains("\n  name  \u{2502} crates\n  \u{2500}"),
            "{screen}"
        );
        assert!(
            screen.contains("\n  alpha \u{2502}     12\n  beta  \u{2502}      7\n"),
            "{screen}"
        );
        assert!(
            screen.contains("\n    fn main() {}\n\n  The end.\n"),
            "{screen}"
        );
        assert!(!screen.contains(IDLE), "the composer goes: {screen}");
        let widest = screen.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{screen}");
    }
}

#[tokio::test]
async fn resize_during_a_stream_shows_all_once() {
    if !has_tools("resize_during_a_stream_shows_all_once", &["tmux"]) {
        return;
    }
    let pieces = [
        "The first paragraph is long enough that it fills more than a row of each of these terminals, \
         and it is done.\n\n",
        "The second one is still open when the ",
        "terminal changes, and ends after it.",
    ];
    let replies = [
        openai::pieces(&pieces).held_after(3),
        openai::pieces(&pieces).held_after(3),
    ];
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    for (columns, times) in [(50, 1), (120, 2)] {
        terminal.types("go on");
        terminal.shows("still open when", times).await;
        terminal.resize(columns, 20);
        terminal.types_half("x");
        terminal.shows("\u{203a} x\n", 1).await;
        terminal.key("BSpace");
        model.release().await;
        terminal.shows("after it.", times).await;
        terminal.shows(OVER, times).await;
    }
    terminal.key("C-d");
    let screen = terminal.shows("ended with 0", 1).await;
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(flat.matches("The first paragraph").count(), 2, "{screen}");
    assert_eq!(
        flat.matches("terminal changes, and ends after it.").count(),
        2,
        "{screen}"
    );
    assert!(!screen.contains("Enter steers"), "{screen}");
}

#[tokio::test]
async fn run_is_steered_queued_and_interrupted() {
    if !has_tools(
        "a_run_is_steered_followed_by_a_message",
        &["tmux", "mkfifo"],
    ) {
        return;
    }
    let model = ModelServer::start(Script::openai([
        openai::tools("wait", &[("bash", json!({"command": "cat gate"}))]),
        openai::text("I heard you."),
        openai::text("The next answer."),
        openai::pieces(&["It begins\n\n", "and never ends"]).held_after(2),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    env.shell("mkfifo gate").await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("begin");
    terminal.shows("bash cat gate", 1).await;
    terminal.types("be brief");
    terminal.shows("steering: be brief", 1).await;
    terminal.types_half("and then");
    terminal.key("Tab");
    terminal.shows("queued: and then", 1).await;
    env.shell("echo opened > gate").await;
    let screen = terminal.shows("The next answer.", 1).await;
    let order = [
        "\u{203a} begin",
        "  opened",
        "\u{203a} be brief",
        "I heard you.",
        "\u{203a} and then",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|text| screen.find(text)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}\n{screen}"
    );
    // Messages before the end would steer.
    terminal.shows(OVER, 2).await;
    terminal.types("once more");
    terminal.shows("It begins", 1).await;
    terminal.key("Escape");
    terminal.shows("\u{b7} cancelled", 1).await;
    terminal.shows(IDLE, 1).await;
    terminal.key("C-c");
    let notice = "Ctrl-C again leaves";
    let mut screen = terminal.shows(notice, 1).await;
    while !screen.contains("ended with") {
        // If some seconds have passed since the notice, it is repeated.
        let notices = screen.matches(notice).count();
        terminal.key("C-c");
        screen = eventually("the chat to leave or to say how", async || {
            let screen = terminal.screen();
            let heard = screen.contains("ended with") || screen.matches(notice).count() > notices;
            heard.then_some(screen)
        })
        .await;
    }
    terminal.shows("ended with 0", 1).await;
    // The input history is private (OPS-5).
    let typed = env.home.join("state/chat_history");
    let mode = std::fs::metadata(&typed).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let requests = model.requests().await;
    assert!(requests[1].to_string().contains("be brief"), "{requests:?}");
    assert!(!requests[0].to_string().contains("be brief"));
}

#[tokio::test]
async fn command_output_is_shown_live() {
    if !has_tools("command_output_is_shown_live", &["tmux", "mkfifo"]) {
        return;
    }
    let command = json!({"command": "seq 100; echo the last line; cat gate"});
    let model = ModelServer::start(Script::openai([
        openai::tools("say", &[("bash", command)]),
        openai::text("It ended."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    env.shell("mkfifo gate").await;
    for (columns, rows) in [(80, 24)] {
        let terminal = Tmux::sized(&env, CHAT, columns, rows);
        terminal.shows(IDLE, 1).await;
        terminal.types("go");
        let screen = terminal.shows("\n  99\n  100\n  the last line\n", 1).await;
        assert!(!screen.contains("\n  98\n"), "it folds: {screen}");
        env.shell("echo open > gate").await;
        let screen = terminal.shows("It ended.", 1).await;
        assert!(
            screen.contains("more lines (Ctrl-T shows them)"),
            "{screen}"
        );
    }
}
