//! `crabtalk mcps import`: servers of other programs, added after confirmation.

use crate::rig::{TestEnv, Tmux, has_tools};
use serde_json::Value;
use std::collections::BTreeMap;

const THEIRS: &str = r#"{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@scope/files", "--token", "s3cret-1"], "env": {"KEY": "s3cret-2"}},
    "tickets": {"type": "http", "url": "https://tickets.example/mcp?key=s3cret-3", "headers": {"Authorization": "Bearer s3cret-4"}},
    "older": {"type": "sse", "url": "https://older.example/sse"},
    "typed": {"command": "x", "env": {"PIN": 4711}},
    "there": {"command": "x"}
  },
  "theirs": {"more": 1}
}"#;

const SECRETS: [&str; 5] = ["s3cret-1", "s3cret-2", "s3cret-3", "s3cret-4", "4711"];

fn outcomes(stdout: &str) -> BTreeMap<String, String> {
    let rows = stdout.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (text("name"), text("outcome"))
    });
    rows.collect()
}

fn config(env: &TestEnv) -> String {
    std::fs::read_to_string(env.home.join("config/config.toml")).unwrap()
}

#[tokio::test]
async fn import_adds_confirmed_servers_and_reports_each() {
    let env = TestEnv::new();
    env.config("[mcp.there]\ncommand = \"mine\"\n");
    env.write("other.json", THEIRS);
    env.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"files": {"command": "cursor"}, "more": {"command": "m"}}}"#,
    );
    env.write(".gemini/settings.json", r#"{"theme": "dark"}"#);
    env.write(".codeium/windsurf/mcp_config.json", "{ // no JSON");
    let _daemon = env.daemon().await;
    let other = env.user_home.join("other.json");
    let other = other.to_str().unwrap();

    // A pipe cannot confirm.
    let asked = env.run(&["mcps", "import", other]).await;
    assert_ne!(asked.code, Some(0));
    assert!(asked.stderr.contains("`--yes`"), "{}", asked.stderr);
    assert!(asked.stdout.contains("not imported"), "{}", asked.stdout);
    assert_eq!(config(&env), "[mcp.there]\ncommand = \"mine\"\n");

    let taken = env.run(&["--json", "mcps", "import", other, "--yes"]).await;
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    let said = outcomes(&taken.stdout);
    assert_eq!(said.len(), 5, "{said:?}");
    assert_eq!(
        (said["files"].as_str(), said["tickets"].as_str()),
        ("imported", "imported")
    );
    assert!(said["older"].contains("old SSE"), "{said:?}");
    assert!(said["typed"].contains("not a string"), "{said:?}");
    assert!(said["there"].contains("exists already"), "{said:?}");
    for output in [&asked, &taken] {
        for secret in SECRETS {
            let shown = output.stdout.contains(secret) || output.stderr.contains(secret);
            assert!(!shown, "{secret}: {} {}", output.stdout, output.stderr);
        }
    }
    let written = config(&env);
    for part in [
        "mcp.files",
        "s3cret-2",
        "Bearer s3cret-4",
        "command = \"mine\"",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }

    // An unreadable file among the usual ones is reported, and the others are imported.
    let around = env.run(&["mcps", "import", "--yes"]).await;
    assert_eq!(around.code, Some(0), "{}", around.stderr);
    assert!(
        around.stderr.contains("mcp_config.json: invalid JSON"),
        "{}",
        around.stderr
    );
    let row = |name: &str| {
        let mut lines = around.stdout.lines();
        lines
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(row("files").contains("exists already"), "{}", around.stdout);
    assert!(row("more").contains("imported"), "{}", around.stdout);
    assert!(
        !around.stdout.contains("settings.json"),
        "{}",
        around.stdout
    );
}

#[tokio::test]
async fn import_asks_at_a_terminal_and_shows_no_secret() {
    if !has_tools("import_asks_at_a_terminal_and_shows_no_secret", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    env.write("other.json", THEIRS);
    let _daemon = env.daemon().await;
    for (answer, holds) in [("n", false), ("y", true)] {
        let other = env.user_home.join("other.json");
        let line = format!("$CRABTALK mcps import {}", other.display());
        let tmux = Tmux::open(&env, &line);
        let screen = tmux.shows("[y]es, [n]o >", 1).await;
        assert!(
            screen.contains("npx -y @scope/files --token ..."),
            "{screen}"
        );
        for secret in SECRETS {
            assert!(!screen.contains(secret), "{screen}");
        }
        tmux.types(answer);
        tmux.shows("ended with", 1).await;
        let written = std::fs::read_to_string(env.home.join("config/config.toml"));
        let written = written.unwrap_or_default();
        assert_eq!(written.contains("mcp.files"), holds, "{written}");
    }
}
