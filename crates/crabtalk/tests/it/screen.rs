//! The chat's screen, typed into and looked at (OPS-1).

use crate::rig::{
    ModelServer, OVER, TestEnv, Tmux, entries, eventually, has_tools, skip, stream_to_end,
};
use crabtalk_proto::{Client, ListAsksMsg, StreamMsg, stream_event};
use crabtalk_testkit::scripted::{Action, Reply, Script, openai};
use futures_util::StreamExt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const CHAT: &str = "\"$CRABTALK\"";

/// What the composer says while nothing runs.
const IDLE: &str = "say something";

/// What the frame of an approval says once it may be answered.
const CHOICES: &str = "y allow once";

const TABLE: &[&str] = &[
    "# Res",
    "ults\n\nSome **bo",
    "ld** words that go on for longer than the narrowest of terminals is wide.\n\n",
    "| name | cr",
    "ates |\n|---|---:|\n| alpha | 12 |\n",
    "| beta | 7 |\n\n```rust\nfn ma",
    "in() {}\n```\n\nThe end.",
];

/// An answer that waits to be released behind some of its pieces.
fn stalled(mut reply: Reply, at: usize) -> Reply {
    reply.actions.insert(at, Action::Stall);
    reply
}

#[tokio::test]
async fn an_answer_streams_as_markdown_at_every_size_and_stays() {
    if !has_tools("an_answer_streams_as_markdown_at_every_size", &["tmux"]) {
        return;
    }
    let sizes = [(80, 24), (200, 50), (40, 24)];
    let model = ModelServer::start(Script::openai(sizes.map(|_| openai::pieces(TABLE)))).await;
    for (columns, rows) in sizes {
        let env = TestEnv::with_model(&model);
        let _daemon = env.daemon().await;
        let terminal = Tmux::sized(&env, CHAT, columns, rows);
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
async fn a_terminal_that_is_resized_in_mid_stream_shows_all_of_it_once() {
    if !has_tools("a_terminal_that_is_resized_in_mid_stream", &["tmux"]) {
        return;
    }
    let pieces = [
        "The first paragraph is long enough that it fills more than a row of each of these terminals, \
         and it is done.\n\n",
        "The second one is still open when the ",
        "terminal changes, and ends after it.",
    ];
    let replies = [
        stalled(openai::pieces(&pieces), 3),
        stalled(openai::pieces(&pieces), 3),
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
async fn a_run_is_steered_followed_by_a_message_and_interrupted() {
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
        stalled(openai::pieces(&["It begins\n\n", "and never ends"]), 2),
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
    terminal.shows("next: and then", 1).await;
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
    // What is typed before the end would steer.
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
        // Where some seconds have passed since the notice it is given again.
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
    // What was typed is nobody else's to read (OPS-5).
    let typed = env.home.join("state/chat_history");
    let mode = std::fs::metadata(&typed).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let requests = model.requests().await;
    assert!(requests[1].to_string().contains("be brief"), "{requests:?}");
    assert!(!requests[0].to_string().contains("be brief"));
}

#[tokio::test]
async fn a_change_is_approved_by_its_diff_and_a_command_denied_with_a_reason() {
    if !has_tools("a_change_is_approved_by_its_diff", &["tmux"]) {
        return;
    }
    let edit = json!({"path": "greeting", "old_string": "Helo", "new_string": "Hello"});
    let model = ModelServer::start(Script::openai([
        openai::tools("fix", &[("edit", edit)]),
        openai::tools("rm", &[("bash", json!({"command": "rm -r precious"}))]),
        openai::text("One letter added, nothing removed."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.script("greeting", "Helo\n");
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
    terminal.shows("choose by y, a or n", 1).await;
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
    terminal.shows("why not?", 1).await;
    terminal.types("it is precious");
    let screen = terminal.shows("nothing removed.", 1).await;
    assert!(screen.contains("\u{2717} bash rm -r precious"), "{screen}");
    assert!(!screen.contains('\u{2503}'), "the frame goes: {screen}");
    let file = std::fs::read_to_string(env.work.join("greeting")).unwrap();
    assert_eq!(file, "Hello\n");
    let history = entries(&env, "crab", "user").await;
    assert!(history[4].content.contains("it is precious"), "{history:?}");
}

#[tokio::test]
async fn what_is_typed_before_a_question_appears_approves_nothing() {
    if !has_tools("what_is_typed_before_a_question_appears", &["tmux"]) {
        return;
    }
    let touch = openai::tools("t", &[("bash", json!({"command": "touch made"}))]);
    let script = [stalled(touch, 0), openai::text("It was denied.")];
    let model = ModelServer::start(Script::openai(script)).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("make it");
    terminal.shows("Enter steers", 1).await;
    // Keys of a sentence that is under way, and of one that ends.
    terminal.types_half("y");
    terminal.shows("\u{203a} y\n", 1).await;
    // The question is there and another key typed, before the chat sees either.
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
    terminal.shows("why not?", 1).await;
    terminal.key("Enter");
    let screen = terminal.shows("It was denied.", 1).await;
    assert!(
        screen.contains("\u{203a} yy"),
        "what was typed is not lost: {screen}"
    );
    assert!(!env.work.join("made").exists());
}

#[tokio::test]
async fn a_prefix_is_shown_allowed_for_good_and_covers_nothing_beside_it() {
    if !has_tools("a_prefix_is_shown_allowed_for_good", &["tmux", "git"]) {
        return;
    }
    let bash = |command: &str| openai::tools("c", &[("bash", json!({ "command": command }))]);
    let model = ModelServer::start(Script::openai([
        bash("git status -s"),
        bash("git status --porcelain"),
        bash("git status -s; touch made"),
        openai::text("That is all."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    env.shell("git init -q").await;
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, "\"$CRABTALK\" --project ''", 100, 30);
    terminal.shows(IDLE, 1).await;
    terminal.types("look");
    let screen = terminal.shows(CHOICES, 1).await;
    assert!(screen.contains("p always this prefix"), "{screen}");
    assert!(
        screen.contains("\"prefix\" stores: bash by crab"),
        "{screen}"
    );
    assert!(screen.contains("git status and whatever"), "{screen}");
    terminal.types_half("p");
    terminal.shows("Enter confirms", 1).await;
    terminal.key("Enter");
    // The second one runs unasked; the third is more than the prefix says.
    terminal.shows("touch made", 1).await;
    let screen = terminal.shows(CHOICES, 1).await;
    assert!(
        screen.contains("\u{25cf} bash git status --porcelain"),
        "{screen}"
    );
    assert!(!screen.contains("p always this prefix"), "{screen}");
    terminal.types_half("n");
    terminal.shows("why not?", 1).await;
    terminal.key("Enter");
    terminal.shows("That is all.", 1).await;
    assert!(!env.work.join("made").exists());
    let approvals = env.run(&["approvals"]).await.ok();
    assert!(approvals.contains("git status"), "{approvals}");
    assert!(approvals.contains("whatever follows"), "{approvals}");
}

#[tokio::test]
async fn what_a_command_says_is_shown_while_it_runs() {
    if !has_tools("what_a_command_says_is_shown", &["tmux", "mkfifo"]) {
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

#[tokio::test]
async fn guests_and_other_clients_are_shown_in_the_conversation() {
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
    // The first words of a name complete it.
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

    // A daemon that is started again is found again.
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    terminal.shows("the daemon was started again", 1).await;
    terminal.types("still there?");
    terminal.shows("told me: still there?", 1).await;
}

#[tokio::test]
async fn a_fresh_start_of_another_client_is_told_and_ones_own_is_told_once() {
    if !has_tools("a_fresh_start_of_another_client_is_told", &["tmux"]) {
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
    other
        .shows("put away as \"good day\"; you begin anew", 1)
        .await;
    one.shows("another client put the history away as \"good day\"", 1)
        .await;
    // What comes behind it shows that nothing else was said of it there.
    one.types("good night");
    let screen = other.shows("told me: good night", 1).await;
    assert!(!screen.contains("another client put"), "{screen}");
    one.types("/new");
    other
        .shows("another client put the history away as \"good night\"", 1)
        .await;
    let screen = one
        .shows("put away as \"good night\"; you begin anew", 1)
        .await;
    assert_eq!(screen.matches("another client put").count(), 1, "{screen}");
}

#[tokio::test]
async fn a_chat_is_stopped_and_goes_on_as_other_programs_do() {
    if !has_tools("a_chat_is_stopped_and_goes_on", &["tmux", "bash"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let line = "exec bash --norc --noprofile -i";
    let terminal = Tmux::sized(&env, line, 80, 24);
    terminal.types("PS1='shell> '");
    terminal.types("\"$CRABTALK\"");
    terminal.shows(IDLE, 1).await;
    terminal.types_half("half a message");
    terminal.shows("\u{203a} half a message", 1).await;
    terminal.key("C-z");
    terminal.shows("Stopped", 1).await;
    terminal.types("echo $((20 + 3))");
    let screen = terminal.shows("\n23\n", 1).await;
    assert!(
        !screen.contains("half a message"),
        "it is taken away: {screen}"
    );
    terminal.types("fg");
    terminal.shows("\u{203a} half a message", 1).await;
    terminal.types("");
    terminal.shows("told me: half a message", 1).await;

    // Stopped by somebody else, it takes the terminal again all the same.
    kill_process(terminal.program().await, Signal::STOP).unwrap();
    terminal.shows("Stopped", 2).await;
    terminal.types("fg");
    // What it showed when it was stopped stays, and is drawn below it.
    terminal.shows(IDLE, 2).await;
    terminal.types("still there?");
    terminal.shows("told me: still there?", 1).await;
}

#[tokio::test]
async fn who_joins_in_mid_run_reads_once_what_was_said() {
    if !has_tools("who_joins_in_mid_run_reads_once", &["tmux", "mkfifo"]) {
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
async fn what_is_said_to_a_daemon_that_died_starts_another_and_is_answered() {
    if !has_tools("what_is_said_to_a_daemon_that_died", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 40);
    terminal.shows(IDLE, 1).await;
    terminal.types("good day");
    terminal.shows("told me: good day", 1).await;
    terminal.shows(OVER, 1).await;
    // While nothing runs.
    daemon.kill().await;
    terminal.shows("disconnected", 1).await;
    terminal.types("are you there?");
    terminal.shows("told me: are you there?", 1).await;
    terminal.shows(IDLE, 1).await;
    // In the middle of a run, as a word to it.
    terminal.types("/slow 60000 it begins");
    terminal.shows("Enter steers", 1).await;
    terminal.shows("  I", 1).await;
    let pid = std::fs::read_to_string(env.home.join("run/daemon.pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    terminal.shows("disconnected", 1).await;
    terminal.types("and now?");
    let screen = terminal.shows("told me: and now?", 1).await;
    // What was said by then stands where it was said, and the answer for itself.
    let places = ["  I\n", "\u{203a} and now?\n", "\n  I am the offline"];
    let places = places.map(|text| screen.rfind(text).expect(text));
    assert!(places.is_sorted(), "{screen}");
    env.run(&["daemon", "stop"]).await.ok();
}

#[tokio::test]
async fn commands_are_the_persons_own() {
    if !has_tools("commands_are_the_persons_own", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(Script::openai([openai::text("I see both.")])).await;
    let mut env = TestEnv::with_model(&model);
    env.set("EDITOR", "echo written in an editor >");
    env.script("notes.txt", "a note\n");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types_half("/compa");
    terminal.shows("summarise the history now", 1).await;
    terminal.key("C-c");
    terminal.types("/compcat");
    terminal.shows("did you mean /compact?", 1).await;
    terminal.key("C-c");
    terminal.types("/permissions");
    terminal.shows("What crab may do here", 1).await;
    terminal.types("/help");
    terminal.shows("Ctrl-R, Up, Down", 1).await;
    terminal.types("!echo shell-$((40 + 2))");
    terminal.shows("ended with 0; the agent sees it", 1).await;
    terminal.types("look at @notes.txt");
    terminal.shows("I see both.", 1).await;
    terminal.shows(OVER, 1).await;
    terminal.types("/new");
    terminal.shows("put away as", 1).await;
    terminal.key("C-g");
    terminal.shows("\u{203a} written in an editor", 1).await;
    terminal.key("C-c");
    terminal.key("Up");
    terminal.shows("\u{203a} written in an editor", 1).await;
    terminal.key("Up");
    terminal.shows("\u{203a} /new\n", 2).await;
    terminal.key("Up");
    terminal.shows("\u{203a} look at @notes.txt\n", 2).await;
    let requests = model.requests().await;
    assert_eq!(requests.len(), 1, "commands reach no model");
    let asked = requests[0].to_string();
    assert!(
        asked.contains("shell-42") && asked.contains("a note"),
        "{asked}"
    );
}

#[tokio::test]
async fn without_colors_there_is_not_one() {
    if !has_tools("without_colors_there_is_not_one", &["tmux"]) {
        return;
    }
    let mut env = TestEnv::new();
    env.set("NO_COLOR", "1");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    let said = env.root().join("said");
    terminal.record(&said);
    terminal.shows(IDLE, 1).await;
    terminal.types("**bold** `code`");
    terminal.shows("told me: bold code", 1).await;
    terminal.key("C-d");
    terminal.shows("ended with 0", 1).await;
    let said = terminal.recorded(&said, "ended with 0").await;
    for escape in said.split("\x1b[").skip(1) {
        let end = escape.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        assert_ne!(&escape[end..=end], "m", "{escape:?}");
    }
}

/// The composer's rule, dimmed as on a ground of which nothing is known, and on a light one.
const RULE: &str = "\x1b[2m\u{2500}";
const RULE_ON_LIGHT: &str = "\x1b[38;5;242m\u{2500}";

#[tokio::test]
async fn a_terminal_that_says_late_that_it_is_light_is_read_and_nothing_of_it_is_typed() {
    if !has_tools("a_terminal_that_says_late_that_it_is_light", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let said = env.root().join("said");
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.record(&said);
    terminal.shows(IDLE, 1).await;
    terminal.types_half("be");
    terminal.shows("\u{203a} be\n", 1).await;
    terminal.answers("\x1b]11;rgb:ffff/fafa/f0f0\x1b\\");
    terminal.types_half("fore");
    terminal.shows("\u{203a} before\n", 1).await;
    let drawn = terminal.recorded(&said, RULE_ON_LIGHT).await;
    assert!(!drawn.contains("11;rgb"), "{drawn:?}");
    // Another answer, ended by a bell, which is no Ctrl-G either.
    terminal.answers("\x1b]11;rgb:1e/1e/2e\x07");
    terminal.types(" noon");
    terminal.shows("told me: before noon", 1).await;
}

#[tokio::test]
async fn the_ground_that_tmux_itself_tells_is_read() {
    if !has_tools("the_ground_that_tmux_itself_tells", &["tmux"]) {
        return;
    }
    for (ground, rule) in [("#fafaf0", RULE_ON_LIGHT), ("#101010", RULE)] {
        let env = TestEnv::new();
        let _daemon = env.daemon().await;
        let said = env.root().join("said");
        let terminal = Tmux::sized(&env, &format!("read begin; {CHAT}"), 80, 24);
        // It answers of a ground that was given to the pane, from 3.3 on.
        if terminal.tmux(&["-V"]).trim() < "tmux 3.3" {
            return skip(
                "the_ground_that_tmux_itself_tells",
                "this tmux tells no ground",
            );
        }
        terminal.tmux(&["select-pane", "-P", &format!("bg={ground}")]);
        terminal.record(&said);
        terminal.key("Enter");
        terminal.shows(IDLE, 1).await;
        // What it answered is no key.
        terminal.types("good day");
        terminal.shows("told me: good day", 1).await;
        let drawn = terminal.recorded(&said, rule).await;
        assert!(!drawn.contains("rgb:"), "{drawn:?}");
    }
}

#[tokio::test]
async fn light_is_told_by_a_variable_or_chosen_and_not_asked_for_then() {
    if !has_tools("light_is_told_by_a_variable_or_chosen", &["tmux"]) {
        return;
    }
    for (name, value, want) in [
        ("COLORFGBG", "0;15", RULE_ON_LIGHT),
        ("CRABTALK_THEME", "light", RULE_ON_LIGHT),
        ("CRABTALK_THEME", "plain", RULE),
        ("", "", RULE_ON_LIGHT),
    ] {
        let mut env = TestEnv::new();
        match name {
            "" => env.config("[cli]\ntheme = \"light\"\n"),
            name => env.set(name, value),
        }
        let _daemon = env.daemon().await;
        let said = env.root().join("said");
        let line = format!("read begin; {CHAT}");
        let terminal = Tmux::sized(&env, &line, 80, 24);
        terminal.record(&said);
        terminal.key("Enter");
        terminal.shows(IDLE, 1).await;
        let drawn = terminal.recorded(&said, want).await;
        let asked = drawn.contains("\x1b]11;?");
        assert_eq!(asked, name == "COLORFGBG", "{name} {value}: {drawn:?}");
    }
}

#[tokio::test]
async fn keys_of_vi_edit_where_they_are_wanted() {
    if !has_tools("keys_of_vi_edit_where_they_are_wanted", &["tmux"]) {
        return;
    }
    let mut env = TestEnv::new();
    env.set("CRABTALK_KEYS", "vi");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types_half("good mourning day");
    terminal.shows("\u{203a} good mourning day\n", 1).await;
    terminal.key("Escape");
    terminal.shows("\u{2039} good mourning day\n", 1).await;
    terminal.types_half("bbcw");
    terminal.shows("\u{203a} good  day\n", 1).await;
    terminal.types_half("morning");
    terminal.key("Escape");
    terminal.shows("\u{2039} good morning day\n", 1).await;
    terminal.types_half("dd");
    terminal.shows("\u{2039} say something", 1).await;
    terminal.types_half("u");
    terminal.shows("\u{2039} good morning day\n", 1).await;
    terminal.key("Enter");
    terminal.shows("told me: good morning day", 1).await;
    terminal.shows(IDLE, 1).await;
    // A run is interrupted by an Esc that ends no inserting.
    terminal.types("/slow 60000 a b");
    terminal.shows("Enter steers", 1).await;
    terminal.key("Escape");
    terminal.shows("\u{2039} Enter steers", 1).await;
    terminal.key("Escape");
    terminal.shows("\u{b7} cancelled", 1).await;
}

#[tokio::test]
async fn every_command_of_the_help_answers() {
    if !has_tools("every_command_of_the_help_answers", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 100, 40);
    terminal.shows(IDLE, 1).await;
    terminal.types("good day");
    terminal.shows("told me: good day", 1).await;
    terminal.shows(OVER, 1).await;
    for (command, answer) in [
        ("/model", "built-in demonstration answers;"),
        ("/agent", "You talk to crab"),
        ("/context", "The context holds"),
        ("/cost", "The daemon has been up"),
        ("/permissions", "What crab may do here"),
        ("/tools", "In scope of crab:"),
        ("/skills", "There are no skills."),
        ("/mcp", "no servers of tools"),
        ("/memory", "Nothing is remembered yet"),
        ("/asks", "nothing is asked in other conversations"),
        ("/diff", "no run changed files here"),
        ("/export out.md", "messages are in"),
        ("/copy", "copied"),
        ("/title A day", "the conversation is called"),
        ("/history 1", "older messages: /history 50"),
        ("/compact", "The history is now:"),
        ("/new", "put away as"),
    ] {
        terminal.types(command);
        terminal.shows(answer, 1).await;
        let screen = terminal.shows(IDLE, 1).await;
        // What was done can be read afterwards.
        let did = format!("\u{203a} {command}\n");
        assert!(screen.contains(&did), "{command}: {screen}");
    }
    assert!(env.work.join("out.md").exists());
    terminal.types("/quit");
    terminal.shows("ended with 0", 1).await;
}
