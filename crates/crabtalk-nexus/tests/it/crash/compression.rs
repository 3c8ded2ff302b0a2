//! A supervisor that ends between any two steps of a compression: it goes on, or
//! came to nothing, and no message of it is sent twice.

use super::Crash;
use crate::double::Line;
use crate::rig::{Rig, is_quiet, say};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::backend::Reply;
use crabtalk_nexus::files::Files;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::world::{Answer, Command};
use std::time::Duration;
use tokio::sync::mpsc;

/// What ADMIN says before and after.
const BEFORE: &str = "@A [BEFORE]: one";
const AFTER: &str = "@A [AFTER]: two";

fn agent() -> Name {
    Name::new("a").unwrap()
}

async fn send(rig: &Rig, commands: &mpsc::Sender<crabtalk_nexus::supervisor::Asked>, text: &str) {
    // An unanswered command is repeated, unless the log has it.
    if !rig.is_logged(text) {
        let text = text.to_owned();
        say(commands, Command::Send { text }).await;
    }
    while !is_quiet(commands).await {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

/// ADMIN's part, up to where the agent works on.
async fn admin(rig: &Rig, commands: &mpsc::Sender<crabtalk_nexus::supervisor::Asked>) {
    if !rig.has_logged("ADMIN: will be compressed") {
        send(rig, commands, BEFORE).await;
        say(commands, Command::Compress { agent: agent() }).await;
    }
    // Where it came to nothing ADMIN is told, and asks for no other one.
    while !rig.has_logged("identity confirmed after compression") {
        let Answer::Status { agents, .. } = say(commands, Command::Status).await else {
            panic!("a status");
        };
        if agents[0].state == State::AwaitAdmin && agents[0].for_admin {
            let approve = Command::Reply {
                agent: agent(),
                prompt: None,
                reply: Reply::Allow,
            };
            say(commands, approve).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    send(rig, commands, AFTER).await;
}

/// At the `at`-th thing that is done everything ends and restarts. How many
/// things there were.
async fn play(rig: &Rig, at: usize) -> usize {
    let files = Files::new(&rig.team());
    std::fs::create_dir_all(rig.root()).unwrap();
    let made = files.init().unwrap();
    files.commit(&made, "begin").unwrap();
    let crash = Crash::at(at);
    loop {
        let (commands, asked) = mpsc::channel(8);
        let supervisor = crash.supervisor(rig);
        let all = tokio::time::timeout(Duration::from_secs(6 * 3600), admin(rig, &commands));
        tokio::select! {
            biased;
            () = crash.comes() => {}
            result = supervisor.run(asked, std::future::pending()) => result.unwrap(),
            done = all => {
                assert!(done.is_ok(), "{at}: it stands still: {:#?}", rig.log());
                return crash.count();
            }
        }
    }
}

fn check(rig: &Rig, at: usize) {
    let mut lines = rig.transcript("A");
    // A kill between a compression and its entry in the log repeats it at once.
    let compressed = |line: &Line| matches!(line, Line::Compressed { .. });
    lines.dedup_by(|a, b| compressed(a) && compressed(b));
    let count = |part: &str| {
        let has = |line: &&Line| matches!(line, Line::User { text, .. } if text.contains(part));
        lines.iter().filter(has).count()
    };
    let place = lines.iter().position(compressed);
    let seen = format!("{at}: {lines:#?}\n{:#?}", rig.log());
    assert_eq!(
        lines.iter().filter(|line| compressed(line)).count(),
        1,
        "{seen}"
    );
    assert_eq!(count("[BEFORE]"), 1, "{seen}");
    assert_eq!(count("[COMPRESSION]"), 1, "{seen}");
    assert_eq!(count("[AFTER]"), 1, "{seen}");
    // Once at its start, once behind the compression.
    assert_eq!(count("[BOOTSTRAP]"), 2, "{seen}");
    let last = lines
        .iter()
        .rposition(|line| matches!(line, Line::User { text, .. } if text.contains("[BOOTSTRAP]")));
    assert!(place < last, "{seen}");
}

#[tokio::test(start_paused = true)]
async fn kill_at_any_step_of_a_compression_repeats_nothing() {
    let config = "[agent.A]\n";
    let rig = Rig::new(config);
    let steps = play(&rig, usize::MAX).await;
    check(&rig, 0);
    assert!(steps > 40, "{steps}");
    for at in 1..=steps {
        let rig = Rig::new(config);
        play(&rig, at).await;
        check(&rig, at);
    }
}
