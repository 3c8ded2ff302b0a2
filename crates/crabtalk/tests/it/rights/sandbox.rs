//! Attempts of an agent to leave the sandbox (GATE-5).

use super::{call, results, say, tool};
use crate::rig::{TestEnv, has_tools, stream_to_end};
use crabtalk_proto::stream_event::Event;
use serde_json::json;
use std::fs;
use std::net::TcpListener;

/// The error on a kernel without landlock; then no command may have run.
const LACKS: &str = "the sandbox cannot be set up";

async fn bash(env: &TestEnv, command: &str) -> Option<String> {
    let result = call(env, "bash", json!({"command": command})).await;
    if result.output.contains(LACKS) {
        assert!(result.is_error);
        return None;
    }
    Some(result.output)
}

#[tokio::test]
async fn agent_cannot_leave_the_sandbox() {
    if !has_tools("nothing_gets_out_of_the_sandbox", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    env.write(".ssh/id", "SECRET");
    env.write("beside/file", "SECRET");
    let _daemon = env.daemon().await;
    let outside = env.user_home.join("outside");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = env.socket();
    // Prints the canary only if everything worked.
    let connect = |to: &str| {
        format!("python3 -c 'import socket; {to}; print(\"CONNECTED\")' 2>&1 | tail -n 1; true")
    };
    let attempts = [
        // The effect is checked outside: inside, the command may have a
        // private folder at that path.
        format!("touch {0}; echo x > {0}", outside.display()),
        "cat ~/.ssh/id".to_owned(),
        "ln -s ~/.ssh/id here; cat here".to_owned(),
        "cat ~/beside/file".to_owned(),
        // The gate, which refuses paths in the home, cannot see this path.
        "cat $HOME/.crabtalk/config/agents/crab.md && echo SECRET".to_owned(),
        "ls $HOME/.crabtalk/sessions && echo SECRET".to_owned(),
        connect(&format!(
            "socket.create_connection((\"127.0.0.1\", {port}), 2)"
        )),
        // A Ping, which a refusal answers.
        connect(&format!(
            "import os; s = socket.socket(socket.AF_UNIX); \
             s.connect(os.environ[\"HOME\"] + \"/.crabtalk/{}\"); \
             s.sendall(bytes([0, 0, 0, 3, 0xf2, 1, 0])); assert b\"may not connect\" not in s.recv(4096)",
            socket.file_name().unwrap().display()
        )),
    ];
    for attempt in attempts {
        let Some(output) = bash(&env, &attempt).await else {
            assert!(!outside.exists());
            return;
        };
        for canary in ["SECRET", "CONNECTED"] {
            assert!(!output.contains(canary), "{attempt}: {output}");
        }
    }
    assert!(!outside.exists());
    // Ordinary work succeeds.
    let output = bash(&env, "echo kept > file && cat file").await;
    assert_eq!(output.as_deref(), Some("kept\n"));
    // The process id differs outside, but the name does not.
    let name = format!("1000.{}", std::process::id());
    let left = format!(
        "setsid sh -c 'echo > child; exec sleep {name}' & until [ -s child ]; do sleep 0.01; done"
    );
    bash(&env, &left).await;
    assert!(!runs(&name));
}

/// Whether any process has this argument.
fn runs(argument: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        // A process that has just ended has no line.
        fs::read(entry.unwrap().path().join("cmdline")).ok()
    });
    let mut arguments = lines.flat_map(|line| {
        line.split(|b| *b == 0)
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    });
    arguments.any(|a| a == argument.as_bytes())
}

#[tokio::test]
async fn reload_opens_configured_folders() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    env.write("beside/file", "SECRET");
    let _daemon = env.daemon().await;
    let Some(before) = bash(&env, "cat ~/beside/file").await else {
        return;
    };
    assert!(!before.contains("SECRET"), "{before}");
    env.config("[sandbox]\nread = [\"~/beside\"]\n");
    env.run(&["daemon", "reload"]).await.ok();
    let after = bash(&env, "cat ~/beside/file; touch ~/beside/x && echo WRITTEN").await;
    let after = after.unwrap();
    assert!(
        after.contains("SECRET") && !after.contains("WRITTEN"),
        "{after}"
    );
}

#[tokio::test]
async fn incomplete_sandbox_is_reported_and_mode_is_ask() {
    let test = "incomplete_sandbox_is_reported_and_mode_is_ask";
    if !has_tools(test, &["unshare"]) {
        return;
    }
    let own = ["--user", "--map-root-user", "true"];
    if !std::process::Command::new("unshare")
        .args(own)
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("SKIPPED: {test}: the kernel has no namespaces to switch off");
        return;
    }
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    fs::create_dir(env.work.join(".git")).unwrap();
    let daemon = env.daemon_without_namespaces().await;
    let echo = tool("bash", &json!({"command": "echo ran"}));
    let events = stream_to_end(&env, say(&env, echo)).await;
    let result = results(&events).remove(0);
    if result.output.contains(LACKS) {
        return;
    }
    assert_eq!(result.output, "ran\n");
    let mode = events.iter().find_map(|event| match &event.event {
        Some(Event::Start(start)) => Some(start.mode.clone()),
        _ => None,
    });
    assert_eq!(mode.as_deref(), Some("ask"));
    assert!(
        daemon
            .stderr()
            .contains("the sandbox has no namespaces here")
    );
    let status = env.run(&["daemon", "status"]).await.ok();
    assert!(status.contains("no namespaces"), "{status}");
}
