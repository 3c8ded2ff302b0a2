//! A component as a process: its port file, its listener, its service.

use crate::rig::{INITIALIZE, Running, example, port_file, post, until};
use std::path::Path;
use std::process::Command;

fn start(home: &Path) -> (Running, u16) {
    let mut dice = example("dice");
    dice.arg("serve");
    crate::rig::start(dice, home, "dice")
}

#[test]
fn component_announces_its_port_and_removes_it() {
    let home = tempfile::tempdir().expect("a folder");
    let (mut dice, port) = start(home.path());
    let answer = post(port, "", INITIALIZE);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"serverInfo\""),
        "{answer}"
    );

    // Pages in a browser are refused.
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

/// A process with the mark that guardians put on agents' commands.
#[cfg(target_os = "linux")]
#[test]
fn agents_commands_are_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let (_dice, port) = start(home.path());
    let ask = |mark: &str| {
        let script = format!(
            "{mark} exec 3<>/dev/tcp/127.0.0.1/{port}; \
             printf 'GET / HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"
        );
        let output = Command::new("bash").args(["-c", &script]).output();
        String::from_utf8(output.expect("bash runs").stdout).expect("text")
    };
    assert!(ask("").starts_with("HTTP/1.1 404"), "{}", ask(""));
    assert_eq!(ask("ulimit -x 7;"), "");
}

#[test]
fn next_start_replaces_a_stale_port_file() {
    let home = tempfile::tempdir().expect("a folder");
    let (first, port) = start(home.path());
    let path = port_file(home.path(), "dice");
    let stale = std::fs::read_to_string(&path).expect("written");
    drop(first);
    // The next start replaces the stale file.
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
fn dry_run_writes_nothing() {
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

/// A `systemctl` that runs the component itself, unless the file `broken` is there.
const SYSTEMCTL: &str = r#"#!/bin/sh
end() {
    [ -e "$HOME/pid" ] || return 0
    kill "$(cat "$HOME/pid")"
    rm "$HOME/pid"
    while [ -e "$CRABTALK_HOME/run/dice.port" ]; do sleep 0.02; done
}
case "$*" in
*restart*)
    end
    [ -e "$HOME/broken" ] && exit 0
    setsid "$DICE" serve > /dev/null 2>&1 < /dev/null &
    echo $! > "$HOME/pid" ;;
*disable*) end ;;
*is-active*) kill -0 "$(cat "$HOME/pid")" ;;
esac
"#;

#[test]
fn start_reports_whether_the_service_came_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (person, home) = (folder.path(), folder.path().join("home"));
    let systemctl = person.join("bin/systemctl");
    std::fs::create_dir(person.join("bin")).expect("made");
    std::fs::write(&systemctl, SYSTEMCTL).expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&systemctl, executable).expect("set");
    let run = |command: &str| {
        let output = example("dice")
            .arg(command)
            .env("PATH", format!("{}/bin:/usr/bin:/bin", person.display()))
            .env("HOME", person)
            .env("CRABTALK_HOME", &home)
            .env("DICE", example("dice").get_program())
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    let announced = || std::fs::read_to_string(port_file(&home, "dice")).unwrap_or_default();

    std::fs::write(person.join("broken"), "").expect("written");
    let (code, said) = run("start");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("`crabtalk-dice logs`"), "{said}");

    std::fs::remove_file(person.join("broken")).expect("removed");
    let mut older = String::new();
    for command in ["start", "start", "restart"] {
        let (code, said) = run(command);
        assert_eq!(code, Some(0), "{command}: {said}");
        assert!(said.contains("127.0.0.1:"), "{command}: {said}");
        assert_ne!(announced(), older, "{command} replaces a running service");
        older = announced();
    }
    assert_eq!(run("stop").0, Some(0));
    assert_eq!(announced(), "");
}
