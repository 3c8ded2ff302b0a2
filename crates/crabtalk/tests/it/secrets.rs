//! Keys appear only in requests to their provider (MODEL-2, OPS-5).

mod crash;

use crate::rig::{ModelServer, TestEnv};
use crabtalk_proto::{Client, GetConfig};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const IN_FILE: &str = "sk-planted-in-file-0123456789";
const IN_HEADER: &str = "planted-in-header-0123456789";
const IN_ENVIRONMENT: &str = "sk-planted-in-environment-0123456789";

/// A node with three planted keys and one model per provider.
fn planted(model: &ModelServer) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PLANTED_KEY", IN_ENVIRONMENT);
    env.config(&format!(
        "model = \"one\"\n\
         [provider.file]\nkind = \"openai\"\nbase_url = \"{url}\"\napi_key = \"{IN_FILE}\"\n\
         models = [\"one\"]\nheaders = {{ x-extra = \"{IN_HEADER}\" }}\n\
         [provider.env]\nkind = \"openai\"\nbase_url = \"{url}\"\napi_key = \"${{PLANTED_KEY}}\"\n\
         models = [\"two\"]\n",
        url = model.url()
    ));
    env
}

/// Asserts that no file or output contains a key.
#[track_caller]
fn hold_no_key(places: &[(String, String)]) {
    for (place, text) in places {
        // The configuration, and a private copy of its accepted version.
        if place.ends_with("config/config.toml") {
            continue;
        }
        if place.contains("/state/accepted/objects/") {
            let mode = fs::metadata(place).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{place}");
            continue;
        }
        for secret in [IN_FILE, IN_HEADER, IN_ENVIRONMENT] {
            assert!(!text.contains(secret), "{place} shows {secret}:\n{text}");
        }
    }
}

/// Reads every file below a folder: its path and text.
fn files(folder: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            into.push((path.display().to_string(), text));
        }
    }
}

#[tokio::test]
async fn keys_are_sent_to_their_provider_only() {
    // A provider that repeats the key in its error, as some do.
    let rude = |key: &str| {
        Reply::error(
            401,
            "invalid_api_key",
            &format!("Incorrect API key provided: {key}"),
        )
    };
    let model = ModelServer::start(Script::openai([
        rude(IN_FILE),
        rude(IN_FILE),
        rude(IN_ENVIRONMENT),
        openai::text("fine"),
    ]))
    .await;
    let mut env = planted(&model);
    env.agent("crab", "description: one");
    env.agent("other", "model: two");
    env.set("CRABTALK_LOG", "trace");
    let daemon = env.daemon().await;

    let mut shown = Vec::new();
    for (arguments, code) in [
        (&["ask", "hello"][..], 1),
        (&["ask", "hello", "--json"], 1),
        (&["ask", "hello", "--agent", "other"], 1),
        (&["ask", "hello", "--agent", "other"], 0),
        (&["history"], 0),
        (&["daemon", "logs", "-n", "10000"], 0),
    ] {
        let output = env.run(arguments).await;
        assert_eq!(output.code, Some(code), "{output:?}");
        shown.push((format!("{arguments:?}"), output.stdout + &output.stderr));
    }
    let config = env.connect().await.get_config(GetConfig {}).await.unwrap();
    assert!(config.config.contains("\"one\""), "{config:?}");
    shown.push(("get_config".into(), config.config));
    shown.push(("stderr".into(), daemon.stderr()));
    files(&env.home, &mut shown);
    hold_no_key(&shown);
    assert_eq!(model.requests().await.len(), 4);
}

/// Entries below a folder that other users can read, write or enter.
fn open_to_others(folder: &Path, found: &mut Vec<String>) {
    for item in std::fs::read_dir(folder).unwrap().flatten() {
        let metadata = item.path().symlink_metadata().unwrap();
        let mode = metadata.permissions().mode();
        if !metadata.is_symlink() && mode & 0o077 != 0 {
            found.push(format!("{} {:o}", item.path().display(), mode & 0o777));
        }
        if metadata.is_dir() {
            open_to_others(&item.path(), found);
        }
    }
}

/// All files stay private even if the owner opens the home to others (OPS-5).
#[tokio::test]
async fn home_files_are_private_to_the_owner() {
    let env = TestEnv::new();
    let prompt = "---\npermissions: { bash: allow, write: allow }\n---\nYou help.\n";
    let agent = env.run_with(&["agents", "new", "crab", "--file", "-"], Some(prompt));
    agent.await.ok();
    let writes = "/tool write {\"path\":\"a.txt\",\"content\":\"a\"}";
    let long =
        "/tool bash {\"command\":\"head -c 300000 /dev/zero | tr '\\\\0' x; echo z > b.txt\"}";
    let event = ["subscriptions", "add", "build:*"];
    for arguments in [
        &["ask", writes][..],
        &["ask", long],
        &["compact"],
        &["search", "words"],
        &["memory", "add", "tea", "green"],
        &["cron", "add", "@daily", "say hello"],
        &["cron", "run", "1"],
        &event,
        &["publish", "build:red", "main is red"],
        &["approvals"],
        &["--as", "bob", "ask", "hello"],
        &["--as", "bob", "conversations", "rm"],
        &["config", "set", "limits.crons", "7"],
    ] {
        let output = env.run(arguments).await;
        assert_eq!(output.code, Some(0), "{arguments:?}: {output:?}");
    }
    env.run(&["daemon", "stop"]).await.ok();
    let mut found = Vec::new();
    open_to_others(&env.home, &mut found);
    assert!(found.is_empty(), "{found:#?}");
    for made in ["records.db", "changes"] {
        let made = env.home.join("state").join(made);
        assert!(made.exists(), "{}", made.display());
    }
}
