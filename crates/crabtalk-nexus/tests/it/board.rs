//! The live board on a real terminal.

use crate::tmux::Tmux;
use crabtalk_testkit::tools::has_tools;

#[tokio::test]
async fn run_shows_the_board_or_lines() {
    if !has_tools("run_shows_the_board_or_lines", &["tmux"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let config = home.join(".crabtalk/config");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::create_dir_all(home.join("team")).unwrap();
    let team = "root = \"~/team\"\n[agent.GHOST]\nkind = \"no-such-kind\"\n";
    std::fs::write(config.join("nexus.toml"), team).unwrap();
    {
        let tmux = Tmux::open(&home, &home, "NEXUS run", (80, 24));
        tmux.shows(&["›GHOST", "FAILED", "1 message (i)"]).await;
        // A second one is told, and takes nothing from the first.
        let second = Tmux::open(&home, &home, "NEXUS run", (81, 24));
        second.shows(&["another NEXUS runs", "ended with 1"]).await;
        tmux.types("i");
        tmux.shows(&["messages for you", "cannot be started"]).await;
        tmux.types("x");
        tmux.shows(&["›GHOST", "1 messages marked as read"]).await;
        tmux.types("q");
        tmux.shows(&["q again ends NEXUS"]).await;
        tmux.types("q");
        tmux.shows(&["ended with 0"]).await;
    }
    let tmux = Tmux::open(&home, &home, "TERM=dumb NEXUS run", (100, 24));
    let screen = tmux.shows(&["NEXUS runs; `crabtalk nexus status`"]).await;
    assert!(!screen.contains("›GHOST"), "{screen}");
    tmux.key("C-c");
    tmux.shows(&["ended with 0"]).await;
}
