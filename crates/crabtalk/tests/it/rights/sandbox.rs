//! Out of the sandbox, tried from a real agent (GATE-5).

use super::{call, results, say, tool};
use crate::rig::{TestEnv, has_tools, stream_to_end};
use crabtalk_proto::StreamMsg;
use crabtalk_proto::stream_event::Event;
use serde_json::json;
use std::fs;
use std::net::TcpListener;

/// What an agent is told where the kernel cannot do it; then nothing may have
/// run at all.
const LACKS: &str = "the sandbox cannot be set up, so the command was not run";

async fn bash(env: &TestEnv, command: &str) -> Option<String> {
    let result = call(env, "bash", json!({"command": command})).await;
    if result.output.contains(LACKS) {
        assert!(result.is_error);
        return None;
    }
    Some(result.output)
}

#[tokio::test]
async fn nothing_gets_out_of_the_sandbox() {
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
    // Prints the canary only if all of it worked.
    let connect = |to: &str| {
        format!("python3 -c 'import socket; {to}; print(\"CONNECTED\")' 2>&1 | tail -n 1; true")
    };
    let attempts = [
        // Whether it came to anything shows outside, below: inside there may
        // be a folder of that name of the command's own.
        format!("touch {0}; echo x > {0}", outside.display()),
        "cat ~/.ssh/id".to_owned(),
        "ln -s ~/.ssh/id here; cat here".to_owned(),
        "cat ~/beside/file".to_owned(),
        // As the gate cannot see them: it refuses what names the home.
        "cat $HOME/.crabtalk/config/agents/crab.md && echo SECRET".to_owned(),
        "ls $HOME/.crabtalk/sessions && echo SECRET".to_owned(),
        connect(&format!(
            "socket.create_connection((\"127.0.0.1\", {port}), 2)"
        )),
        // A Ping; what comes back is a refusal.
        connect(&format!(
            "import os; s = socket.socket(socket.AF_UNIX); \
             s.connect(os.environ[\"HOME\"] + \"/.crabtalk/{}\"); \
             s.sendall(bytes([0, 0, 0, 3, 0xf2, 1, 0])); assert b\"may not talk\" not in s.recv(4096)",
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
    // And what it is for works.
    let output = bash(&env, "echo kept > file && cat file").await;
    assert_eq!(output.as_deref(), Some("kept\n"));
    // Its number outside is another than its own; what it is called is not.
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
        // What ends meanwhile does not run.
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
async fn the_owner_opens_folders_and_the_network_and_reload_takes_it() {
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
async fn a_conversation_stays_in_its_folder_when_a_link_takes_its_name() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    env.write("keys/authorized_keys", "hers\n");
    let _daemon = env.daemon().await;
    // The folder is named by a link, which is followed when it is named.
    let (named, real) = (env.user_home.join("named"), env.work.join("member"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &named).unwrap();
    let touch = tool("bash", &json!({"command": "echo mine >> authorized_keys"}));
    let request = |cwd: Option<&std::path::Path>| StreamMsg {
        cwd: cwd.map(|cwd| cwd.display().to_string()),
        content: touch.clone(),
        ..StreamMsg::default()
    };
    let first = results(&stream_to_end(&env, request(Some(&named))).await);
    if first[0].output.contains(LACKS) {
        return;
    }
    assert_eq!(
        fs::read_to_string(real.join("authorized_keys")).unwrap(),
        "mine\n"
    );
    fs::rename(&real, env.work.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(env.user_home.join("keys"), &real).unwrap();
    let second = results(&stream_to_end(&env, request(None)).await);
    assert!(
        second[0].is_error && second[0].output.contains("is now a link"),
        "{second:?}"
    );
    assert_eq!(
        fs::read_to_string(env.user_home.join("keys/authorized_keys")).unwrap(),
        "hers\n"
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
        println!("SKIPPED: {test}: the kernel gives no namespaces, hence none can be taken");
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
