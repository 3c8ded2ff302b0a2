//! Storms of resizes.

use super::*;

#[tokio::test]
async fn storm_of_resizes_loses_no_line() {
    if !has_tools("storm_of_resizes_loses_no_line", &["tmux"]) {
        return;
    }
    const COUNT: usize = 60;
    let paragraph = |n: usize| format!("Paragraph {n} ends.\n\n");
    let mut pieces: Vec<String> = (0..COUNT).map(paragraph).collect();
    pieces.insert(COUNT / 2, "The answer waits here ".to_owned());
    pieces.insert(COUNT / 2 + 1, "and goes on.\n\n".to_owned());
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let reply = openai::pieces(&pieces).held_after(COUNT / 2 + 2);
    let model = ModelServer::start(Script::openai([reply])).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, CHAT, 80, 24);
    terminal.shows(IDLE, 1).await;
    terminal.types("go on");
    terminal.shows("The answer waits here", 1).await;
    let mut seed = 7_u32;
    let mut size = move |least: usize, most: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        least + (seed >> 16) as usize % (most - least + 1)
    };
    let mut storm = |count: usize| {
        for _ in 0..count {
            terminal.resize(size(10, 200), size(4, 50));
        }
        terminal.resize(80, 24);
    };
    storm(30);
    model.release().await;
    terminal.shows(OVER, 1).await;
    terminal.types_half("/");
    terminal.shows("/help", 1).await;
    storm(30);
    terminal.key("C-l");
    terminal.types_half("x");
    let shown = eventually("the last frame", async || {
        let shown = terminal.visible();
        shown.contains("\u{203a} /x\n").then_some(shown)
    })
    .await;
    assert_eq!(shown.matches("\u{203a} /").count(), 1, "{shown}");
    terminal.key("C-c");
    terminal.key("C-d");
    let screen = terminal.shows("ended with 0", 1).await;
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for n in 0..COUNT {
        let paragraph = format!("Paragraph {n} ends.");
        assert_eq!(flat.matches(&paragraph).count(), 1, "{paragraph} {screen}");
    }
}
