//! A component as a process: it announces itself, answers, and takes its port
//! file along when it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The example of the crate, which Cargo builds with its tests.
fn dice() -> PathBuf {
    let tests = std::env::current_exe().expect("known");
    let built = tests
        .parent()
        .and_then(Path::parent)
        .expect("deps lie in the profile's folder");
    built
        .join("examples")
        .join(format!("dice{}", std::env::consts::EXE_SUFFIX))
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(home: &Path) -> Running {
    let child = Command::new(dice())
        .arg("serve")
        .env("CRABTALK_HOME", home)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Running(child.expect("the example is built"))
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

fn announced(home: &Path) -> u16 {
    let path = home.join("run/dice.port");
    until("the announcement", || {
        let text = std::fs::read_to_string(&path).ok()?;
        text.lines().next()?.parse().ok()
    })
}

/// One request, and all of the answer.
fn post(port: u16, extra: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n{extra}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

#[test]
fn it_announces_itself_answers_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let mut dice = start(home.path());
    let port = announced(home.path());
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
    assert!(!home.path().join("run/dice.port").exists());
}

#[test]
fn a_killed_component_takes_its_place_again() {
    let home = tempfile::tempdir().expect("a folder");
    let first = start(home.path());
    let port = announced(home.path());
    drop(first);
    // What a kill left is replaced by the next start.
    let path = home.path().join("run/dice.port");
    let stale = std::fs::read_to_string(&path).expect("left behind");
    let _second = start(home.path());
    let fresh = until("a new announcement", || {
        let text = std::fs::read_to_string(&path).ok()?;
        (text != stale).then_some(text)
    });
    let answers = fresh
        .lines()
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a port");
    assert!(
        post(answers, "", INITIALIZE).contains("\"serverInfo\""),
        "{port} before, {fresh} now"
    );
}

#[test]
fn its_commands_can_be_tried_without_doing_anything() {
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new(dice())
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
    let output = Command::new(dice()).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "a command is needed");
}
