//! A sandboxed program in a terminal keeps the terminal, and its walls.

#![cfg(test)]

use crabtalk_guardian::{
    GuardianCommand, PinnedPath, PolicyBuilder, Run, SandboxConfig, TerminalCommand,
    child_environment,
};
use crabtalk_testkit::{Terminal, tools::has_tools};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// The program prints what it reaches, then echoes a line, hears
/// Ctrl-C and goes on after Ctrl-Z.
const PROGRAM: &str = r#"
trap 'echo interrupted' INT
test -t 0 && test -t 1 && : >/dev/tty && echo has-terminal
test -e "$SOCKET" || echo no-socket
test -e "$OWN/in" && echo written >"$OWN/out" && echo own-writable
perl -e 'exit(ioctl(STDIN, 0x5412, my $c = "x") ? 1 : 0)' && echo no-typing
test -z "$SECRET" && echo no-secret
read -r line; echo "got $line"
read -r line || read -r line; echo "got $line"
kill -STOP $$; echo continued
exit 7
"#;

fn shows(terminal: &Terminal, text: &str) {
    let begin = Instant::now();
    while !terminal.screen(false).contains(text) {
        let late = begin.elapsed() > Duration::from_secs(30);
        assert!(!late, "no {text:?}: {}", terminal.screen(false));
        // tmux may miss the end of a child until another one ends.
        terminal.tmux(&["run-shell", "-b", "true"]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes an order for the program and answers the line that runs it.
fn line(folder: &Path, program: &str) -> String {
    let (work, home) = (folder.join("work"), folder.join("home"));
    let own = folder.join("user/.own");
    for folder in [&work, &home, &own] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(own.join("in"), "").unwrap();
    let mut environment = child_environment(std::env::vars_os());
    environment.push(("SOCKET".into(), home.join("nexus.sock").into()));
    environment.push(("OWN".into(), own.clone().into()));
    let sandbox = PolicyBuilder {
        config: &SandboxConfig::default(),
        cwd: &PinnedPath::judge(&work).unwrap(),
        read_only: false,
        write: &[],
        hosts: &[],
        home: &home,
        user_home: Some(&folder.join("user")),
        environment: &environment,
        readable: &[],
        own: &[own],
        caches: None,
        namespaces: true,
    };
    let run = Run::Program {
        program: "bash".into(),
        arguments: vec!["-c".into(), program.into()],
    };
    let command = TerminalCommand {
        run,
        sandbox: sandbox.build().unwrap(),
        environment,
    };
    let guardian = GuardianCommand::new(env!("CARGO_BIN_EXE_test-guardian"));
    let words = command
        .write(&folder.join("order.json"), &guardian)
        .unwrap();
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.display()))
        .collect();
    format!(
        "cd '{}' && SECRET=1 exec {}",
        work.display(),
        words.join(" ")
    )
}

#[test]
fn sandboxed_program_owns_its_terminal() {
    if !has_tools("sandboxed_program_owns_its_terminal", &["tmux", "perl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::create_dir(path.join("home")).unwrap();
    let _listener = UnixListener::bind(path.join("home/nexus.sock")).unwrap();
    let terminal = Terminal::open(&path, &line(&path, PROGRAM), (80, 24));
    for said in [
        "has-terminal",
        "no-socket",
        "own-writable",
        "no-typing",
        "no-secret",
    ] {
        shows(&terminal, said);
    }
    terminal.types("hello");
    terminal.key("Enter");
    shows(&terminal, "got hello");
    terminal.key("C-c");
    shows(&terminal, "interrupted");
    terminal.types("again");
    terminal.key("Enter");
    shows(&terminal, "got again");
    shows(&terminal, "continued");
    shows(&terminal, "Pane is dead (status 7");
    assert!(path.join("user/.own/out").exists());
}

#[test]
fn closed_terminal_ends_its_processes() {
    if !has_tools("closed_terminal_ends_its_processes", &["tmux"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let program = "trap '' HUP TERM; touch begun; while sleep 0.05; do echo >> beats; done";
    let terminal = Terminal::open(&path, &line(&path, program), (80, 24));
    let begin = Instant::now();
    let beats = path.join("work/beats");
    while !beats.exists() {
        let late = begin.elapsed() > Duration::from_secs(30);
        assert!(!late, "{}", terminal.screen(false));
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(terminal);
    let size = || std::fs::metadata(&beats).unwrap().len();
    let mut last = size();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = size();
        if now == last {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "it goes on");
        last = now;
    }
}
