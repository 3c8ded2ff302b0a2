//! Light and dark.

use super::*;

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
