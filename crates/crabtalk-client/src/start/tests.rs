use super::*;
use crate::Endpoint;
use crate::tests::Fake;
use std::fs;

fn child(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

#[tokio::test]
async fn daemon_that_answers_is_ready() {
    let fake = Fake::start().await;
    let mut child = child("exit 1");
    let ready = wait(&fake.client(), &mut child).await;
    assert_eq!(ready, Ok(()), "a rival answers");
    child.wait().unwrap();
}

#[tokio::test]
async fn ended_daemon_is_not_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::new(Endpoint::of_home(folder.path()), "test");
    let mut child = child("exit 7");
    child.wait().unwrap();
    tokio::time::pause();
    let error = wait(&client, &mut child).await.unwrap_err();
    assert_eq!(error, "ended at once (exit status: 7)");
}

#[tokio::test]
async fn missing_program_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::new(Endpoint::of_home(folder.path()), "test");
    let starter = Starter::new("/does/not/exist", folder.path());
    let error = client.find_or_start(&starter).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot start /does/not/exist: ")
    );
    assert!(error.advice().is_some());
}

#[tokio::test]
async fn start_runs_the_command_that_knows_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("crabtalk");
    let script = "#!/bin/sh\necho \"crabtalk: no room for $*\" >&2\nexit 1\n";
    fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let error = Starter::new(&program, "/home/x").start().await.unwrap_err();
    assert_eq!(error.to_string(), "no room for daemon start --home /home/x");
}

#[test]
fn error_has_the_end_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("daemon.log");
    fs::write(&log, "old\n").unwrap();
    let begin = fs::metadata(&log).unwrap().len();
    let mut text = String::from("old\n");
    for i in 0..20 {
        text.push_str(&format!("line {i}\x1b[1m\n"));
    }
    fs::write(&log, text).unwrap();
    let lines = last_lines(&log, begin).unwrap();
    assert!(
        lines.starts_with("  line 10<U+001B>[1m\n") && lines.ends_with("  line 19<U+001B>[1m"),
        "{lines}"
    );
}
