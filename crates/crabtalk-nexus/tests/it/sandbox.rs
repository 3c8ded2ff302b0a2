//! A terminal agent with `sandbox = true`, in a real terminal.

use crate::cli::{Running, nexus, said};
use crabtalk_testkit::tools::has_tools;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The attempts of the agent's program; its answers go into the team's folder.
const PROGRAM: &str = r#"
{
  test -t 0 && echo terminal
  "$NEXUS" status >/dev/null 2>&1 || echo "status: $?"
  test -e "$HOME/.crabtalk/state/nexus/nexus.sock" || echo no socket
  echo key >"$HOME/.probe/key" && echo own configuration
  echo out >"$HOME/outside" && echo private home
  echo '{}' >>"$CRABTALK_HOOKS" && echo hooks
  ln -sf "$HOME/outside" "$CRABTALK_HOOKS" 2>/dev/null || echo hooks stay
  test -z "$UNLISTED" && echo no secrets
} >answers.new
mv answers.new answers
exec sleep 1000
"#;

/// Ends the tmux server of the test with all that runs in it.
struct Server<'a>(&'a Path);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let mut end = Command::new("tmux");
        let _ = end.arg("-S").arg(self.0).arg("kill-server").output();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn sandboxed_agent_cannot_reach_nexus() {
    let settings = "sandbox = true\nwritable = [\"~/.probe\"]";
    let Some((folder, answers)) = answers("sandboxed_agent", settings, PROGRAM) else {
        return;
    };
    let expected = "terminal\nstatus: 3\nno socket\nown configuration\nprivate home\nhooks\n\
                    hooks stay\nno secrets\n";
    assert_eq!(answers, expected);
    let home = folder.path();
    assert!(home.join(".probe/key").exists() && !home.join("outside").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn unsandboxed_agent_cannot_command_nexus() {
    let program = r#"
{
  test -t 0 && echo terminal
  "$NEXUS" status >/dev/null 2>&1; echo "status: $?"
  setsid -w "$NEXUS" approve probe >/dev/null 2>&1; echo "approve: $?"
} >answers.new
mv answers.new answers
exec sleep 1000
"#;
    if let Some((_folder, answers)) = answers("unsandboxed_agent", "", program) {
        assert_eq!(answers, "terminal\nstatus: 1\napprove: 1\n");
    }
}

/// Runs NEXUS with an agent of these settings, and waits for what its program
/// writes into the team's folder.
fn answers(test: &str, settings: &str, agent: &str) -> Option<(tempfile::TempDir, String)> {
    if !has_tools(test, &["tmux", "git"]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (config, socket) = (home.join(".crabtalk/config"), home.join("tmux"));
    let program = Path::new(env!("CARGO_BIN_EXE_crabtalk-nexus"));
    for folder in [&config, &home.join(".probe")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let readable = match settings {
        "" => String::new(),
        _ => format!("readable = [{:?}]\n", program.parent().unwrap()),
    };
    let team = format!(
        "root = \"~/team\"\n[agent.PROBE]\nkind = \"probe\"\n{settings}\n{readable}\
         env = {{ NEXUS = {program:?} }}\n[tmux]\nsocket = {socket:?}\n[kind.probe]\n\
         command = [\"sh\", \"-c\", '''{agent}''']\n\
         [kind.probe.ready]\nshows = \"never\"\n",
    );
    std::fs::write(config.join("nexus.toml"), team).unwrap();
    let (code, text) = said(&home, &["init"]);
    assert_eq!(code, 0, "{text}");
    let _server = Server(&socket);
    let mut run = nexus(&home, &["run"]);
    let run = run.env("UNLISTED", "secret").env("TERM", "xterm");
    let mut running = Running(run.spawn().unwrap());

    let begin = Instant::now();
    let answers = loop {
        if let Ok(answers) = std::fs::read_to_string(home.join("team/answers")) {
            break answers;
        }
        let late = begin.elapsed() > Duration::from_secs(60);
        assert!(!late, "{}", said(&home, &["log"]).1);
        assert!(running.0.try_wait().unwrap().is_none(), "NEXUS ended");
        std::thread::sleep(Duration::from_millis(50));
    };
    // A command from elsewhere is answered.
    let (code, text) = said(&home, &["status"]);
    assert_eq!(code, 0, "{text}");
    Some((folder, answers))
}
