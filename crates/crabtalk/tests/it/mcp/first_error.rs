//! Errors of programs that break the protocol.

use super::{allowing, call, comes_to_be, tool};
use crate::rig::{TestEnv, eventually, has_tools, stream_to_end};
use serde_json::json;

/// `[mcp.odd]`, which breaks the protocol in this way.
fn odd(mode: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rig/mcp_odd.py");
    let name = mode.replace(' ', "-");
    format!("[mcp.{name}]\ncommand = \"python3\"\nargs = [\"{path}\", \"{mode}\"]\n")
}

/// Output of `mcps test`, and whether it succeeded.
async fn tested(env: &TestEnv, mode: &str) -> (bool, String) {
    let name = mode.replace(' ', "-");
    let output = env.run(&["mcps", "test", &name]).await;
    let said = format!("{}{}", output.stdout, output.stderr);
    (output.code == Some(0), said)
}

#[tokio::test]
async fn mcps_test_reports_the_first_error() {
    if !has_tools("mcps_test_reports_the_first_error", &["python3"]) {
        return;
    }
    let cases: [(&str, bool, &[&str]); 12] = [
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
                "left out: fine: it is there twice",
                "odd-tools__fine",
            ],
        ),
        ("many", true, &["512", "left out: what is beyond 512 tools"]),
        ("toolless", true, &["the server has no tools"]),
        ("with a banner", true, &["with-a-banner__fine"]),
        ("old", true, &["version 2024-11-05\n", "old__fine"]),
        (
            "unknown",
            true,
            &[
                "version 2099-01-01, which is not known here",
                "unknown__fine",
            ],
        ),
    ];
    let env = TestEnv::new();
    env.config(&cases.map(|(mode, _, _)| odd(mode)).concat());
    let _daemon = env.daemon().await;
    for (mode, fine, wanted) in cases {
        let (ok, said) = tested(&env, mode).await;
        assert_eq!(ok, fine, "{mode}: {said}");
        for words in wanted {
            assert!(said.contains(words), "{mode}: {words}: {said}");
        }
    }
}

#[tokio::test]
async fn output_before_the_handshake_is_in_the_error() {
    let mut env = TestEnv::new();
    env.set("CRABTALK_MCP_START_MS", "500");
    let shell = |name: &str, script: &str| {
        format!("[mcp.{name}]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}; exec sleep 1000\"]\n")
    };
    let waits = shell("waits", "echo 'Open https://login.example' >&2");
    let babbles = shell("babbles", "echo 'Welcome to odd'");
    env.config(&format!("{waits}{babbles}"));
    let _daemon = env.daemon().await;
    for (name, words) in [
        ("waits", "Open https://login.example"),
        ("babbles", "Welcome to odd"),
    ] {
        // It may be ended before it writes anything.
        eventually(words, async || {
            let (ok, said) = tested(&env, name).await;
            assert!(!ok && said.contains("no handshake within"), "{said}");
            said.contains(words).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn hanging_program_is_ended_and_restarted() {
    if !has_tools("hanging_program_is_ended_and_restarted", &["python3"]) {
        return;
    }
    let mut env = TestEnv::new();
    env.set("CRABTALK_MCP_PING_MS", "300");
    allowing(&env);
    env.config(&super::program("files", "idle_secs = 1"));
    let _daemon = env.daemon().await;
    let pid: i32 = call(&env, "files__pid", json!({}))
        .await
        .output
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    // Whoever goes on calling does not keep it.
    let other = eventually("another program", async || {
        let events = stream_to_end(&env, tool("files__pid", json!({}))).await;
        let said = super::result(&events).output;
        said.parse::<i32>().ok()
    });
    assert_ne!(other.await, pid.as_raw_nonzero().get());
    comes_to_be(&env, "files", "idle").await;
}
