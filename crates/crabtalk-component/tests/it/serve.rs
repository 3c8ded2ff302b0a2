//! A component as a process: it announces itself, answers, and takes its port
//! file along when it ends.

use crate::rig::{INITIALIZE, Running, example, port_file, post, until};
use std::path::Path;
use std::process::Command;

fn start(home: &Path) -> (Running, u16) {
    let mut dice = example("dice");
    dice.arg("serve");
    crate::rig::start(dice, home, "dice")
}

#[test]
fn it_announces_itself_answers_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let (mut dice, port) = start(home.path());
    let answer = post(port, "", INITIALIZE);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"serverInfo\""),
        "{answer}"
    );

    // A page in a browser, and a name that somebody else resolves, are refused.
    let browser = post(port, "Origin: https://example.com\r\n", INITIALIZE);
    assert!(browser.starts_with("HTTP/1.1 403"), "{browser}");

    let ended = Command::new("kill")
        .arg("-TERM")
        .arg(dice.0.id().to_string())
        .status();
    assert!(ended.is_ok_and(|status| status.success()));
    let status = until("the end", || dice.0.try_wait().expect("waited for"));
    assert!(status.success(), "{status}");
    assert!(!port_file(home.path(), "dice").exists());
}

#[test]
fn a_killed_component_takes_its_place_again() {
    let home = tempfile::tempdir().expect("a folder");
    let (first, port) = start(home.path());
    let path = port_file(home.path(), "dice");
    let stale = std::fs::read_to_string(&path).expect("written");
    drop(first);
    // What a kill left is replaced by the next start, whose port may be another.
    let (_second, _) = start(home.path());
    let fresh = until("a new announcement", || {
        let text = std::fs::read_to_string(&path).ok()?;
        (text != stale).then_some(text)
    });
    let answers = fresh.lines().next().and_then(|line| line.parse().ok());
    let answers = answers.expect("a port");
    assert!(
        post(answers, "", INITIALIZE).contains("\"serverInfo\""),
        "{port} before, {fresh} now"
    );
}

#[test]
fn its_commands_can_be_tried_without_doing_anything() {
    let home = tempfile::tempdir().expect("a folder");
    let output = example("dice")
        .args(["start", "--dry-run"])
        .env("CRABTALK_HOME", home.path().join("ho me"))
        .env("HOME", home.path())
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("ai.crabtalk.dice") && said.contains("# run "),
        "{said}"
    );
    assert_eq!(
        std::fs::read_dir(home.path()).expect("there").count(),
        0,
        "nothing was written"
    );
    let output = example("dice").output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "a command is needed");
}
