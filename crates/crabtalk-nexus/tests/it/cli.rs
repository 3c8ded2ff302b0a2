//! The program itself: its files, its socket, its commands.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn nexus(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crabtalk-nexus"));
    command
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .stdin(Stdio::null());
    command
}

fn said(home: &Path, words: &[&str]) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = nexus(home, words).output().unwrap();
    let text = [stdout, stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (status.code().unwrap_or(-1), text)
}

/// Ended when it is dropped, by its id.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn check_31_a_team_is_made_run_and_asked_and_who_cannot_be_driven_says_why() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no git");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (code, text) = said(home, &["status"]);
    assert_eq!(code, 3, "{text}");
    let (code, text) = said(home, &["init"]);
    assert!(code == 0 && text.contains("nexus.toml"), "{text}");
    let config = home.join(".crabtalk/config/nexus.toml");
    let mode = std::fs::metadata(&config).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let team = "root = \"~/team\"\n[agent.GHOST]\nkind = \"no-such-kind\"\n";
    std::fs::write(&config, team).unwrap();
    let (code, text) = said(home, &["run"]);
    assert!(code == 1 && text.contains("nexus init"), "{text}");
    let (code, text) = said(home, &["init"]);
    assert!(code == 0 && text.contains("ghost/AGENT.md"), "{text}");

    let mut running = Running(
        nexus(home, &["run"])
            // Whether there is a tmux or not: it is asked for by nobody else.
            .env("PATH", "/nonexistent")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let stderr = running.0.stderr.take().unwrap();
    let mut failed = BufReader::new(stderr).lines().map_while(Result::ok);
    let line = failed.find(|line| line.contains("FAILED"));
    assert!(line.is_some_and(|line| line.contains("GHOST")));

    let (code, text) = said(home, &["status"]);
    assert!(code == 0 && text.contains("FAILED"), "{text}");
    let (code, text) = said(home, &["send", "@NOBODY [X]: hi"]);
    assert!(code == 1 && text.contains("GHOST"), "{text}");
    let (code, text) = said(home, &["task", "add", "@GHOST [X]: hi"]);
    assert!(code == 0 && text.contains("t1"), "{text}");
    let (_, text) = said(home, &["tasks"]);
    assert!(text.contains("t1 @GHOST [X] hi - open"), "{text}");
    let (_, text) = said(home, &["inbox"]);
    assert!(
        text.contains("GHOST") && text.contains("cannot be started"),
        "{text}"
    );
    let (_, text) = said(home, &["explain", "ghost"]);
    assert!(text.contains("because:") && text.contains("tmux"), "{text}");
    let (code, text) = said(home, &["run"]);
    assert!(code == 1 && text.contains("another NEXUS runs"), "{text}");
}
