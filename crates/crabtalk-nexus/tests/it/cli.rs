//! The program itself: its files, its socket, its commands.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn nexus(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crabtalk-nexus"));
    command
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .stdin(Stdio::null());
    command
}

pub(crate) fn said(home: &Path, words: &[&str]) -> (i32, String) {
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
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn team_is_created_run_and_commanded() {
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
            // Without tmux on the path.
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
    for (words, exit, says) in [
        (&["list"][..], 0, "t1 @GHOST [X] hi - open"),
        (&["reassign", "t1", "any"], 0, "t1"),
        (&["list"], 0, "t1 @ANY [X] hi - open"),
        (&["done", "1", "by", "hand"], 0, "t1"),
        (&["show", "t1"], 0, "by hand"),
        (&["rm", "t1"], 1, "t1 is done already"),
        (&["add", "@GHOST [Y]: more"], 0, "t2"),
        (&["rm", "t2"], 0, "t2 is removed"),
        (&["show", "t9"], 1, "no task t9"),
    ] {
        let (code, text) = said(home, &[&["task"], words].concat());
        assert!(code == exit && text.contains(says), "{words:?}: {text}");
    }
    // Messages stay unread if the output could not be written.
    let full = std::fs::File::options().write(true).open("/dev/full");
    let status = nexus(home, &["inbox"]).stdout(full.unwrap()).status();
    assert_eq!(status.unwrap().code(), Some(1));
    let (_, text) = said(home, &["inbox"]);
    assert!(
        text.contains("GHOST") && text.contains("cannot be started"),
        "{text}"
    );
    let (code, text) = said(home, &["inbox"]);
    assert_eq!((code, text.as_str()), (0, ""));
    let (_, text) = said(home, &["explain", "ghost"]);
    assert!(text.contains("because:") && text.contains("tmux"), "{text}");
    let (code, text) = said(home, &["run"]);
    assert!(code == 1 && text.contains("another NEXUS runs"), "{text}");
    let (code, text) = said(home, &["log", "ghost"]);
    assert!(code == 0 && text.contains("FAILED"), "{text}");
    let (code, text) = said(home, &["log", "nobody"]);
    assert_eq!(
        (code, text.as_str()),
        (1, "crabtalk nexus: no agent NOBODY; the team: GHOST\n")
    );
}

/// A pager that shows a page, or a terminal that was stopped, reads no more.
#[test]
fn unread_lines_do_not_block_nexus() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let config = home.join(".crabtalk/config/nexus.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let team = format!("root = {home:?}\n[agent.GHOST]\nkind = \"no-such-kind\"\n");
    std::fs::write(&config, team).unwrap();
    let (unread, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 1024]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut running = Running(nexus(home, &["run"]).stderr(full).spawn().unwrap());
    while said(home, &["status"]).0 == 3 {}
    let (code, text) = said(home, &["task", "add", "@GHOST [X]: hi"]);
    assert!(code == 0 && text.contains("t1"), "{text}");
    let pid = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(running.0.wait().unwrap().success());
    drop(unread);
}

/// An option behind a text is an option: it was sent to the agent as words.
#[test]
fn usage_error_is_one_line_or_one_object() {
    let folder = tempfile::tempdir().unwrap();
    for (words, exit, says) in [
        (
            &["frobnicate"][..],
            2,
            "unrecognized subcommand 'frobnicate'",
        ),
        (
            &["start"],
            2,
            "not provided: <AGENT>; write `crabtalk nexus start",
        ),
        (&["start", "a b"], 2, "is not a valid name"),
        (&["start", "a", "b"], 2, "unexpected argument 'b'"),
        (
            &["log", "-n", "99999999999999999999"],
            2,
            "number too large",
        ),
        (&["inbox", "--keep", "--keep"], 2, "multiple times"),
        (&["approve", "a", "yes", "--always"], 2, "--always"),
        (
            &["send", "@A [X]: y", "--bogus"],
            2,
            "unexpected argument '--bogus'",
        ),
        (
            &["explain", "99999999999999999999"],
            1,
            "no log entries about",
        ),
        (&["log", "nobody"], 1, "no agent NOBODY; the team: "),
        (
            &["send", "@A [X]: y"],
            3,
            "start it with `crabtalk nexus run`",
        ),
        (
            &["approve", "a", "-5"],
            3,
            "start it with `crabtalk nexus run`",
        ),
        (&["run"], 1, "`crabtalk nexus init` writes one"),
    ] {
        let (code, text) = said(folder.path(), words);
        assert_eq!((code, text.lines().count()), (exit, 1), "{words:?}: {text}");
        assert!(
            text.starts_with("crabtalk nexus: ") && text.contains(says),
            "{text}"
        );
        // Wherever `--json` stands.
        let behind = [words, &["--json"]].concat();
        let before = [&["--json"], words].concat();
        for words in [behind, before] {
            let (code, text) = said(folder.path(), &words);
            let error: serde_json::Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
            assert_eq!((code, &error["exit"]), (exit, &exit.into()), "{text}");
            assert_eq!(error["type"], "error");
            let message = error["message"].as_str().unwrap_or_default();
            assert!(message.contains(says), "{words:?}: {text}");
        }
    }
}
