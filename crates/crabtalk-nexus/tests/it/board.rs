//! The live board on real terminals: a team of doubles behind a real supervisor,
//! and people who look on, decide and leave.

use crate::double::{Line, Tap};
use crate::rig::{Rig, say};
use crate::tmux::Tmux;
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::control::Control;
use crabtalk_nexus::supervisor::Asked;
use crabtalk_nexus::world::Command;
use crabtalk_testkit::tools::has_tools;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

const TEAM: &str = "[agent.BUILDER]\n[agent.REVIEWER]\n[agent.WRITER]\n[agent.OPS]\n[agent.OPS-2]\n[agent.OPS-3]\n";

fn no_tap() -> Tap {
    Arc::new(|| false)
}

/// A team in fast time, and a home in which programs find it.
fn team(config: &str) -> (Rig, PathBuf) {
    let mut rig = Rig::new(config);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    rig.clock = Clock::fast(u64::try_from(now.as_millis()).unwrap(), 100);
    let home = rig.root().parent().unwrap().join("home");
    let state = home.join(".crabtalk/state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::create_dir_all(rig.state()).unwrap();
    std::os::unix::fs::symlink(rig.state(), state.join("nexus")).unwrap();
    (rig, home)
}

/// Runs the team during an action.
async fn with_team<T>(rig: &Rig, work: impl AsyncFnOnce(mpsc::Sender<Asked>) -> T) -> T {
    let (commands, asked) = mpsc::channel(8);
    let supervisor = rig.supervisor(&no_tap());
    let control = Control::open(&rig.state()).unwrap();
    let changes = supervisor.changes();
    tokio::select! {
        result = supervisor.run(asked, std::future::pending()) => panic!("{result:?}"),
        () = control.serve(&commands, &changes) => unreachable!("it serves until it is dropped"),
        done = work(commands.clone()) => done,
    }
}

fn pressed(rig: &Rig, name: &str) -> Vec<bool> {
    let of = |line| match line {
        Line::Pressed { allow, .. } => Some(allow),
        Line::User { .. } | Line::Died { .. } | Line::Compressed { .. } => None,
    };
    rig.transcript(name).into_iter().filter_map(of).collect()
}

async fn task(commands: &mpsc::Sender<Asked>, text: &str) {
    let text = text.to_owned();
    say(commands, Command::AddTask { text }).await;
}

#[tokio::test]
async fn two_people_look_on_and_one_allows_and_refuses() {
    if !has_tools("two_people_look_on_and_one_allows_and_refuses", &["tmux"]) {
        return;
    }
    let (rig, home) = team(TEAM);
    let folder = rig.root().parent().unwrap().to_owned();
    with_team(&rig, async |commands| {
        let small = Tmux::open(&folder, &home, "NEXUS monitor", (80, 24));
        let large = Tmux::open(&folder, &home, "NEXUS monitor", (200, 50));
        let narrow = Tmux::open(&folder, &home, "NEXUS monitor", (40, 20));
        for tmux in [&small, &large, &narrow] {
            tmux.shows(&["BUILDER", "OPS-3", "IDLE", "6 agents"]).await;
        }
        task(&commands, "@REVIEWER [PUBLISH]: prompt git push").await;
        let wide = large
            .shows(&["1 wait for you", "your approval: bash git push"])
            .await;
        assert!(
            wide.contains("LAST MESSAGE") && wide.contains("← NEXUS [PUBLISH]"),
            "{wide}"
        );
        narrow.shows(&["APPROVAL", "wait for you"]).await;
        small.shows(&["1 wait for you"]).await;
        // Tab goes to who waits; a key that comes too early is told, not taken.
        small.key("Tab");
        small.shows(&["›REVIEWER", "│ bash git push"]).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        small.types("a");
        small.shows(&["REVIEWER: approved"]).await;
        large.shows(&["[PUBLISH] done"]).await;
        assert_eq!(pressed(&rig, "REVIEWER"), [true]);

        // Another one is refused with a reason, at the large one.
        task(&commands, "@WRITER [SECOND]: prompt rm -r book").await;
        large.shows(&["your approval: bash rm"]).await;
        large.key("Tab");
        large.shows(&["›WRITER", "│ bash rm -r book"]).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        large.types("d");
        large.shows(&["why WRITER may not"]).await;
        large.types("not today; q");
        large.key("Enter");
        large.shows(&["WRITER: denied"]).await;
        large.shows(&["[SECOND] failed: refused"]).await;
    })
    .await;
    assert_eq!(pressed(&rig, "WRITER"), [false]);
}

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
        tmux.shows(&["›GHOST", "1 messages are read"]).await;
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
