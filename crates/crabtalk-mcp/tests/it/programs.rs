//! Servers that are programs: their life, their calls, and what goes wrong.

use crate::support::{Offline, World, program};
use crabtalk_mcp::{Pace, Phase};
use crabtalk_testkit::tools::has_tools;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn program_starts_on_first_use_and_ends_when_idle() {
    if !has_tools("program_starts_on_first_use", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    let mut files = world.program(&[("LATE_SECS", "1.5")]);
    files.idle = SECOND;
    world.servers.configure(vec![files.clone()]).await;
    world.phase("files", Phase::Idle).await;
    assert_eq!(world.starts().len(), 0);
    // The idle time begins when the program has started, however long that takes.
    world.servers.first_look(|_| true).await;
    world.echo("files").await;
    assert_eq!(world.starts().len(), 1);
    let idle = world.phase("files", Phase::Idle).await;
    assert!(idle.tools > 10, "its tools stay on offer: {idle:?}");
    world.echo("files").await;
    assert_eq!(world.starts().len(), 2);
    // The tools are known after a restart without starting the program.
    let world = world.restart().await;
    world.servers.configure(vec![files]).await;
    let known = world.phase("files", Phase::Idle).await;
    assert_eq!((known.tools, world.starts().len()), (idle.tools, 2));
}

#[tokio::test]
async fn hanging_program_is_ended_and_restarted() {
    if !has_tools("hanging_program_is_ended_and_restarted", &["python3"]) {
        return;
    }
    let pace = Pace {
        ping: SECOND / 3,
        answer: SECOND / 3,
        hanging: SECOND / 3,
        ..Pace::default()
    };
    let world = World::new(Offline, pace);
    let mut files = world.program(&[]);
    (files.idle, files.timeout) = (SECOND, SECOND);
    world.servers.configure(vec![files]).await;
    world.servers.first_look(|_| true).await;
    let pid = Pid::from_raw(world.starts()[0]).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // Calls do not keep a hanging program alive.
    loop {
        if !world
            .call("files__echo", json!({"text": "a"}))
            .await
            .is_error
        {
            break;
        }
        tokio::time::sleep(SECOND / 100).await;
    }
    assert_eq!(world.starts().len(), 2);
}

#[tokio::test]
async fn changed_credential_replaces_the_program() {
    if !has_tools("changed_credential_replaces_the_program", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    for key in ["first", "second"] {
        let files = world.program(&[("API_KEY", key)]);
        world.servers.configure(vec![files]).await;
        world.servers.first_look(|_| true).await;
        let seen = world.call("files__environment", json!({"name": "API_KEY"}));
        assert_eq!(seen.await.content, key);
        let other = world.call("files__environment", json!({"name": "HOME"}));
        assert_eq!(other.await.content, "(not set)", "not the daemon's own");
    }
}

#[tokio::test]
async fn calls_run_concurrently_and_end_in_time() {
    if !has_tools("calls_run_concurrently_and_end_in_time", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    let mut files = world.program(&[]);
    files.timeout = SECOND;
    world.servers.configure(vec![files]).await;
    world.servers.first_look(|_| true).await;
    let slow = world.call("files__slow", json!({"ms": 60_000}));
    let (slow, ()) = tokio::join!(slow, world.echo("files"));
    assert!(slow.is_error, "{slow:?}");
    // A dropped call is cancelled as one that is late is.
    let dropped = world.call("files__slow", json!({"ms": 60_000}));
    let _ = tokio::time::timeout(SECOND / 10, dropped).await;
    loop {
        if world.call("files__cancelled", json!({})).await.content == "2" {
            break;
        }
        tokio::time::sleep(SECOND / 100).await;
    }
    // New tools are on offer once the server announces them.
    let before = world.servers.list()[0].tools;
    world.call("files__grow", json!({})).await;
    world
        .until(|all| (all[0].tools == before + 1).then_some(()))
        .await;
    // A program that ends fails its call and is started again.
    let died = world.call("files__die", json!({})).await;
    assert!(died.is_error, "{died:?}");
    world.echo("files").await;
    assert_eq!(world.starts().len(), 2);
}

#[tokio::test]
async fn failed_start_is_named() {
    let world = World::new(Offline, Pace::default());
    let broken = world.program(&[("BROKEN", "1"), ("COMPLAIN", "the disk is on fire")]);
    let absent = program("absent", "/no/such/program", &[], Default::default());
    for (settings, want) in [(broken, "disk is on fire"), (absent, "cannot be started")] {
        let name = settings.name.clone();
        world.servers.configure(vec![settings]).await;
        world.servers.first_look(|_| true).await;
        let failed = world.phase(&name, Phase::Failed).await;
        assert!(failed.error.contains(want), "{failed:?}");
    }
}

/// How a program breaks the protocol, whether its test succeeds, and what the test says.
const ODD: [(&str, bool, &[&str]); 12] = [
    (
        "wants a variable",
        false,
        &["ended with code 1", "ODD_KEY has to be set", "Node.js"],
    ),
    (
        "shows its usage",
        false,
        &["ended with code 2", "Usage: odd --root DIR"],
    ),
    (
        "refuses",
        false,
        &["it refused the handshake: the variable ODD_KEY is not set"],
    ),
    ("dies", false, &["ended with code 9", "out of luck"]),
    (
        "locked",
        false,
        &["it refused to list its tools: its database is locked"],
    ),
    ("no list", false, &["its list of tools cannot be read"]),
    (
        "odd tools",
        true,
        &[
            "left out: 5: ",
            "left out: bare: ",
            "left out: fine: the list contains it twice",
            "odd__fine",
        ],
    ),
    ("many", true, &["left out: tools beyond the limit of 512"]),
    ("toolless", true, &["list of tools: 0"]),
    ("with a banner", true, &["odd__fine"]),
    ("old", true, &["version 2024-11-05", "odd__fine"]),
    (
        "unknown",
        true,
        &["version 2099-01-01, which is not known here", "odd__fine"],
    ),
];

#[tokio::test]
async fn test_of_a_server_reports_the_first_error() {
    if !has_tools("test_of_a_server_reports_the_first_error", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/odd.py");
    for (mode, fine, wanted) in ODD {
        let odd = program("odd", "python3", &[path, mode], Default::default());
        let tested = world.servers.test(&odd).await;
        assert_eq!(tested.error.is_empty(), fine, "{mode}: {tested:?}");
        let said = format!("{tested:?}");
        for words in wanted {
            assert!(said.contains(words), "{mode}: {words}: {said}");
        }
    }
}

#[tokio::test]
async fn output_before_the_handshake_is_in_the_error() {
    let pace = Pace {
        start: SECOND / 2,
        ..Pace::default()
    };
    let world = World::new(Offline, pace);
    for (script, words) in [
        (
            "echo 'Open https://login.example' >&2",
            "Open https://login.example",
        ),
        ("echo 'Welcome to odd'", "Welcome to odd"),
    ] {
        let script = format!("{script}; exec sleep 1000");
        let odd = program("odd", "sh", &["-c", &script], Default::default());
        // On a slow machine it may be ended before it writes anything.
        loop {
            let tested = world.servers.test(&odd).await;
            let said = format!("{tested:?}");
            assert!(said.contains("no handshake within"), "{said}");
            if said.contains(words) {
                break;
            }
        }
    }
}
