//! Keys and commands.

use super::*;

#[tokio::test]
async fn chat_suspends_and_resumes() {
    if !has_tools("chat_suspends_and_resumes", &["tmux", "bash"]) {
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

    // After SIGSTOP the chat takes over the terminal again.
    terminal.shows(OVER, 1).await;
    terminal.shows(IDLE, 1).await;
    kill_process(terminal.program().await, Signal::STOP).unwrap();
    terminal.shows("Stopped", 2).await;
    terminal.types("fg");
    // The old screen stays, and the new one is drawn below it.
    terminal.shows(IDLE, 2).await;
    terminal.types("still there?");
    terminal.shows("told me: still there?", 1).await;
}

#[tokio::test]
async fn shell_commands_run_and_reach_the_agent() {
    if !has_tools("shell_commands_run_and_reach_the_agent", &["tmux"]) {
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
    terminal.shows("summarise the history", 1).await;
    terminal.key("C-c");
    terminal.types("/compcat");
    terminal.shows("did you mean /compact?", 1).await;
    terminal.key("C-c");
    terminal.types("/permissions");
    terminal.shows("Permissions of crab", 1).await;
    terminal.types("/help");
    terminal.shows("Ctrl-R, Up, Down", 1).await;
    terminal.types("!echo shell-$((40 + 2))");
    terminal.shows("ended with 0; the agent sees it", 1).await;
    terminal.types("look at @notes.txt");
    terminal.shows("I see both.", 1).await;
    terminal.shows(OVER, 1).await;
    terminal.types("/new");
    terminal.shows("history archived as", 1).await;
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
        ("/status", "session file"),
        // The list of models may be older than the first run, which adds this model.
        ("/model", "offline"),
        ("/agent", "You talk to crab"),
        ("/context", "The context holds"),
        ("/cost", "The daemon has been running"),
        ("/permissions", "Permissions of crab"),
        ("/tools", "In scope of crab:"),
        ("/skills", "No skills."),
        ("/mcp", "No MCP servers"),
        ("/memory", "No memory entries"),
        ("/asks", "no questions in other conversations"),
        ("/diff", "no recorded changes in this folder"),
        ("/export out.md", "messages are in"),
        ("/copy", "copied"),
        ("/title A day", "title set to"),
        ("/history 1", "older messages: /history 50"),
        ("/compact", "The history is now:"),
        ("/new", "history archived as"),
        ("/clear", "nothing to archive"),
    ] {
        terminal.types(command);
        terminal.shows(answer, 1).await;
        // The command stays readable.
        terminal.shows(&format!("\u{203a} {command}\n"), 1).await;
        terminal.shows(IDLE, 1).await;
    }
    assert!(env.work.join("out.md").exists());
    terminal.types("/quit");
    terminal.shows("ended with 0", 1).await;
}
