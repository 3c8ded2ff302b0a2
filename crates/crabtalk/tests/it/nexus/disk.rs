//! A disk without room under NEXUS: nothing is done that is not written down,
//! nothing is lost, and all goes on when there is some.

use super::speaker::Speaker;
use super::supervised::{ONE, Team, of_one};
use crate::rig::{eventually, has_tools};
use crabtalk_nexus::world::{Answer, Command, TaskState};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

/// Lets no file of NEXUS grow beyond so many bytes: a full disk that needs no
/// disk and no rights.
fn limit(pid: Pid, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        ..getrlimit(Resource::Fsize)
    };
    prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

fn task(topic: &str) -> Command {
    let text = format!("@D2 [{topic}]: work");
    Command::AddTask { text }
}

async fn done(team: &Team<'_>, count: usize) {
    eventually("tasks that are done", async || {
        let tasks = team.tasks().await;
        let is_done = |task: &TaskState| matches!(task, TaskState::Done { .. });
        let done = tasks.iter().filter(|(_, task)| is_done(&task.state));
        (done.count() == count).then_some(())
    })
    .await;
}

/// Why nothing is done, as the board tells it.
async fn held(team: &Team<'_>) -> Option<String> {
    let Answer::Board { held, .. } = team.say(Command::Board { after: 0 }).await else {
        panic!("a board");
    };
    held
}

#[tokio::test]
async fn a_full_disk_holds_a_team_and_room_lets_it_go_on_with_nothing_lost() {
    if !has_tools("a_full_disk_holds_a_team", &["git"]) {
        return;
    }
    let speaker = Speaker::start().await;
    let env = of_one(&speaker);
    let _daemon = env.daemon().await;
    let mut team = Team::new(&env, ONE);
    team.start().await;
    assert!(matches!(team.say(task("ONE")).await, Answer::Done { .. }));
    done(&team, 1).await;

    let log = team.places().state().join("events.jsonl");
    let full = || std::fs::metadata(&log).unwrap().len() + 20;
    limit(team.pid(), Some(full()));
    let second = team.say(task("TWO"));
    let room = async {
        let why = eventually("what holds it", async || held(&team).await).await;
        assert!(why.contains("events.jsonl"), "{why}");
        let refused = team.say(task("THREE")).await;
        let Answer::Refused { why } = refused else {
            panic!("{refused:?}");
        };
        assert!(why.contains("events.jsonl"), "{why}");
        limit(team.pid(), None);
    };
    // Who asked before is answered when there is room.
    let (second, ()) = tokio::join!(second, room);
    assert!(matches!(second, Answer::Done { .. }), "{second:?}");
    done(&team, 2).await;
    assert_eq!(held(&team).await, None);

    // Killed while it is held, it begins from what was acknowledged.
    limit(team.pid(), Some(full()));
    let state = team.places().state();
    let lost = task("LOST");
    let fourth = crabtalk_nexus::control::say(&state, &lost);
    tokio::select! {
        said = fourth => panic!("{said:?}"),
        _ = eventually("what holds it", async || held(&team).await) => {}
    }
    team.kill().await;
    team.start().await;
    assert!(matches!(team.say(task("FIVE")).await, Answer::Done { .. }));
    done(&team, 3).await;
    let topics: Vec<String> = team
        .tasks()
        .await
        .iter()
        .map(|(_, t)| t.topic.to_string())
        .collect();
    assert_eq!(topics, ["ONE", "TWO", "FIVE"]);
}
