//! What happens when the daemon or a guardian is killed. The daemon is this
//! very test program, started again to play its part.
#![cfg(test)]

mod support;

use crabtalk_guardian::{Children, Peers, Refusal, Swept};
use crabtalk_tools::OsTools;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use support::{Process, World};

const PART: &str = "CRABTALK_TEST_PART";
const CLIENT: &str = "CRABTALK_TEST_CLIENT";
const FOLDER: &str = "CRABTALK_TEST_FOLDER";

/// Starts this program again, to play a part in `world`.
fn play(part: &str, world: &World) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "plays_its_part", "--nocapture"])
        .env(PART, part)
        .env(FOLDER, &world.cwd)
        .spawn()
        .unwrap()
}

/// A test only by name: does nothing unless started to play a part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let cwd = PathBuf::from(std::env::var(FOLDER).unwrap());
    let children = Children::adopt().unwrap();
    let world = World::new();
    let mut config = world.config();
    config.children = children.clone();
    let tools = OsTools::new(config);
    match part.as_str() {
        "daemon" => {
            let command =
                "setsid bash -c 'trap \"\" TERM; echo $$ > alive; exec sleep 1000' & wait";
            support::run(
                &tools,
                support::call(
                    &cwd,
                    "bash",
                    json!({ "command": command, "escalate": true }),
                ),
            )
            .await;
            panic!("outlived its killing");
        }
        "orphanage" => kills_its_guardian(&children, &tools, cwd).await,
        "crowded" => inherits_a_crowd(&tools, cwd).await,
        "concealed" => conceals_itself(&tools, cwd).await,
        "nested" => has_a_guardian_above(),
        "glutton" => swallows(&tools, cwd).await,
        other => panic!("no such part: {other}"),
    }
}

async fn kills_its_guardian(children: &Children, tools: &OsTools, cwd: PathBuf) {
    let (mut friend, known) = children
        .spawn(tokio::process::Command::new("sleep").arg("1000"))
        .unwrap();
    let friend_pid = friend.id().unwrap().cast_signed();
    let command = "setsid bash -c 'trap \"\" TERM; (sleep 1000 & echo $! > alive; wait)' & \
                   echo $$ > alive; cat go; kill -9 $PPID; exec sleep 1000";
    let output = support::run(
        tools,
        support::call(
            &cwd,
            "bash",
            json!({ "command": command, "escalate": true }),
        ),
    )
    .await;
    assert!(
        output.is_error
            && output
                .content
                .contains("guardian of this command was killed")
    );
    // Nothing is left but the friend, not even as a zombie.
    let left: Vec<i32> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|c| {
            c.split_whitespace()
                .map(|p| p.parse().unwrap())
                .collect::<Vec<i32>>()
        })
        .collect();
    assert_eq!(left, [friend_pid]);
    assert!(!Process::of(friend_pid).is_gone());
    leaves_what_others_started(children, &cwd).await;
    friend.kill().await.unwrap();
    drop(known);
}

/// Separate sessions, a chain in which each forks the next and ends, and
/// parents that never wait.
async fn inherits_a_crowd(tools: &OsTools, cwd: PathBuf) {
    std::fs::write(cwd.join("next"), "setsid -f sh next").unwrap();
    let command = "for i in $(seq 200); do setsid sleep 1000 & done; \
                   for i in $(seq 200); do sleep 1000 & done; \
                   for i in 1 2 3; do sh next; done; kill -9 $PPID; wait";
    let output = support::run(
        tools,
        support::call(
            &cwd,
            "bash",
            json!({ "command": command, "escalate": true }),
        ),
    )
    .await;
    assert!(
        output
            .content
            .contains("guardian of this command was killed")
    );
    // A thread that has just ended has handed its children on.
    let found = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    let left: String = found.collect();
    assert_eq!(left.trim(), "");
}

/// Processes that lose their parent fall to the daemon, and may not be its
/// clients. Processes without a guardian are left alone.
async fn leaves_what_others_started(children: &Children, cwd: &Path) {
    let mut command = tokio::process::Command::new("bash");
    command
        .args(["-c", "sleep 1000 & echo $! > orphan"])
        .current_dir(cwd);
    let (mut parent, known) = children.spawn(&mut command).unwrap();
    assert!(parent.wait().await.unwrap().success());
    drop(known);
    let text = std::fs::read_to_string(cwd.join("orphan")).unwrap();
    let orphan: i32 = text.trim().parse().unwrap();
    let process = Process::of(orphan);
    assert!(is_refused(&Peers::new(), orphan));
    assert_eq!(children.sweep().await, Swept::default());
    assert!(!process.is_gone());
    rustix::process::kill_process(Pid::from_raw(orphan).unwrap(), Signal::KILL).unwrap();
}

fn is_refused(peers: &Peers, pid: i32) -> bool {
    peers.judge(pid, Ok(None)).is_err()
}

async fn conceals_itself(tools: &OsTools, cwd: PathBuf) {
    let read = format!(
        "cat /proc/{}/environ >/dev/null 2>&1 && echo seen",
        std::process::id()
    );
    let call = support::call(&cwd, "bash", json!({ "command": read, "escalate": true }));
    assert_eq!(support::run(tools, call.clone()).await.content, "seen\n");
    crabtalk_guardian::conceal().unwrap();
    if !rustix::process::geteuid().is_root() {
        assert_eq!(
            support::run(tools, call.clone()).await.content,
            "[exit code 1]"
        );
    }
    // It still sees to its own children.
    let alive = json!({ "command": "echo alive", "escalate": true });
    assert_eq!(
        support::run(tools, support::call(&cwd, "bash", alive))
            .await
            .content,
        "alive\n"
    );
}

/// Played inside a command, beside another process of that command, which is
/// the client: guardians above the daemon itself do not count.
fn has_a_guardian_above() {
    let client = std::env::var(CLIENT).unwrap().parse().unwrap();
    assert!(!Process::of(client).is_gone());
    assert!(!is_refused(&Peers::new(), client));
}

async fn swallows(tools: &OsTools, cwd: PathBuf) {
    let command = "head -c 300000000 /dev/zero | tr '\\0' x; echo the end";
    let output = support::run(
        tools,
        support::call(
            &cwd,
            "bash",
            json!({ "command": command, "escalate": true }),
        ),
    )
    .await;
    assert!(!output.is_error && output.content.ends_with("the end\n"));
    assert!(output.content.contains("the first 64 MiB are in"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 64 << 10, "{peak_kib} KiB");
}

#[tokio::test]
async fn a_killed_daemon_leaves_nothing_running() {
    let world = World::new();
    let alive = world.fifo("alive");
    let mut daemon = play("daemon", &world);
    let process = alive.receive_process().await;
    daemon.kill().unwrap();
    assert!(process.ends_within_secs(60));
    assert!(!daemon.wait().unwrap().success());
}

#[tokio::test]
async fn killed_guardian_ends_only_its_processes() {
    let world = World::new();
    let (alive, go) = (world.fifo("alive"), world.fifo("go"));
    let mut daemon = play("orphanage", &world);
    // Two writers, in either order, perhaps at once.
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(alive.receive_processes().await);
    }
    go.send().await;
    assert!(daemon.wait().unwrap().success());
    for process in &seen {
        assert!(process.ends_within_secs(0));
    }
}

#[tokio::test]
async fn a_crowd_that_falls_to_the_daemon_is_ended_in_one_go() {
    let world = World::new();
    assert!(play("crowded", &world).wait().unwrap().success());
}

#[tokio::test]
async fn a_concealed_daemon_shows_its_environment_to_nobody() {
    let world = World::new();
    assert!(play("concealed", &world).wait().unwrap().success());
}

#[tokio::test]
async fn a_daemon_that_a_command_starts_has_clients() {
    let world = World::new();
    let command = format!(
        "sleep 1000 & {CLIENT}=$! {PART}=nested {FOLDER}=. {} --exact plays_its_part 2>&1",
        std::env::current_exe().unwrap().display()
    );
    let output = world.outside(&world.tools(), &command).await;
    assert!(!output.is_error, "{}", output.content);
}

#[tokio::test]
async fn endless_output_costs_bounded_memory() {
    let world = World::new();
    assert!(play("glutton", &world).wait().unwrap().success());
}

#[tokio::test]
async fn a_peer_below_a_guardian_is_told_from_others() {
    let world = World::new();
    let (alive, go) = (world.fifo("alive"), world.fifo("go"));
    let tools = world.tools();
    let peers = Peers::new();
    let command = "setsid bash -c 'echo $$ > alive; cat go' & wait";
    let test = async {
        let inside: i32 = alive.receive().await.parse().unwrap();
        assert!(matches!(
            peers.judge(inside, Ok(None)),
            Err(Refusal::Command)
        ));
        go.send().await;
        inside
    };
    let (_, inside) = tokio::join!(world.outside(&tools, command), test);
    // Ended: nothing can be said of it, so it is refused.
    let told = peers.judge(inside, Ok(None));
    assert!(matches!(told, Err(Refusal::Unreadable { .. })), "{told:?}");
    assert!(!is_refused(&peers, std::process::id().cast_signed()));
    let outside = std::os::unix::process::parent_id().cast_signed();
    // Knowledge of one process is not used for another.
    for _ in 0..2 {
        assert!(!is_refused(&peers, outside));
        assert!(is_refused(&peers, inside));
    }
}

/// The mark needs no ancestor, and no command can take it off itself.
#[tokio::test]
async fn a_command_carries_its_mark_wherever_it_goes() {
    let world = World::new();
    let tools = world.tools();
    let shown = world
        .outside(&tools, "setsid -w bash -c 'ulimit -Hx; ulimit -Sx'")
        .await;
    let limits = shown.content.lines();
    let limits: Vec<u64> = limits.map(|l| l.parse().expect(l)).collect();
    let own = rustix::process::getrlimit(rustix::process::Resource::Locks).maximum;
    assert!(limits.iter().all(|l| own.is_none_or(|own| *l < own)));
    let raise = "(ulimit -x unlimited) 2>/dev/null && echo raised || echo kept";
    let raised = world.outside(&tools, raise).await.content;
    if !rustix::process::geteuid().is_root() {
        assert_eq!(raised, "kept\n");
    }
}

/// A descriptor from the socket identifies the client, whichever process has the number
/// by now.
#[tokio::test]
async fn a_peer_that_has_ended_is_refused_by_its_descriptor() {
    let mut gone = Command::new("true").spawn().unwrap();
    let handle = pidfd_open(Pid::from_child(&gone), PidfdFlags::empty()).unwrap();
    gone.wait().unwrap();
    // This one is alive, and free, and not the one that connected.
    let alive = std::os::unix::process::parent_id().cast_signed();
    let peers = Peers::new();
    for _ in 0..2 {
        let told = peers.judge(alive, Ok(Some(handle.as_fd())));
        assert!(matches!(told, Err(Refusal::Unreadable { .. })), "{told:?}");
        assert!(!is_refused(&peers, alive));
    }
}
