//! The terminal's title and notifications.

use super::*;
use crate::terminal::correcting;

#[tokio::test]
async fn title_and_bell_say_that_the_agent_waits() {
    if !has_tools("title_and_bell_say_that_the_agent_waits", &["tmux"]) {
        return;
    }
    let (_model, mut env) = correcting().await;
    env.set("CRABTALK_BELL", "1");
    let _daemon = env.daemon().await;
    let said = env.root().join("said");
    let terminal = Tmux::sized(&env, &format!("read begin; {CHAT}"), 80, 24);
    terminal.record(&said);
    let title = || terminal.tmux(&["display-message", "-p", "#{pane_title}"]);
    let before = title();
    terminal.key("Enter");
    terminal.shows(IDLE, 1).await;
    terminal.types("fix it");
    terminal.shows(CHOICES, 1).await;
    assert!(
        title().starts_with("waiting for you \u{b7} crab \u{b7} "),
        "{}",
        title()
    );
    let rung = terminal
        .recorded(&said, "\x1b]9;crab waits for you\x07\x07")
        .await;
    assert!(rung.contains("\x1b]2;working \u{b7} crab"), "{rung:?}");
    assert!(rung.contains("\x1b[?1004h"), "{rung:?}");
    terminal.key("C-c");
    terminal.key("C-c");
    terminal.shows("ended with 0", 1).await;
    assert_eq!(title(), before);
}
