//! Light and dark terminals.

use super::*;

/// The composer's rule on a light background.
const RULE_ON_LIGHT: &str = "\x1b[38;5;242m\u{2500}";

#[tokio::test]
async fn late_background_answer_is_used_and_not_typed() {
    if !has_tools("late_background_answer_is_used_and_not_typed", &["tmux"]) {
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
    // An answer that ends with BEL, which must not be handled as Ctrl-G.
    terminal.answers("\x1b]11;rgb:1e/1e/2e\x07");
    terminal.types(" noon");
    terminal.shows("told me: before noon", 1).await;
}
