//! Configuration and agents on the command line.

use crate::rig::TestEnv;
use crabtalk_proto::{Client, SetConfigMsg};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Sets an editor that replaces the file's contents with this text.
fn editor(env: &mut TestEnv, text: &str) {
    let wanted = env.root().join("wanted");
    fs::write(&wanted, text).unwrap();
    let editor = env.root().join("editor");
    let script = format!("#!/bin/sh\ncp '{}' \"$1\"\n", wanted.display());
    fs::write(&editor, script).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("EDITOR", editor.to_str().unwrap());
}

/// The file that an error names as kept.
fn kept(stderr: &str) -> PathBuf {
    let (_, behind) = stderr.split_once("your text is kept in ").unwrap();
    Path::new(behind.split(';').next().unwrap()).to_owned()
}

#[tokio::test]
async fn set_keeps_comments_and_applies_at_once() {
    let env = TestEnv::new();
    env.config("# mine\n[limits] # of this machine\nqueued_runs = 3 # few\n");
    let _daemon = env.daemon().await;
    let path = env.home.join("config/config.toml");
    let said = env.run(&["config", "path"]).await.ok();
    assert_eq!(said.trim(), path.to_str().unwrap());
    env.run(&["config", "set", "limits.queued_runs", "5"])
        .await
        .ok();
    env.run(&["config", "set", "default_agent", "crab"])
        .await
        .ok();
    let text = fs::read_to_string(&path).unwrap();
    for kept in [
        "# mine\n",
        "[limits] # of this machine\n",
        "queued_runs = 5 # few\n",
    ] {
        assert!(text.contains(kept), "{text}");
    }
    let get = async |key: &str| env.run(&["config", "get", key]).await.ok();
    assert_eq!(get("limits.queued_runs").await, "5\n");
    assert_eq!(get("default_agent").await, "crab\n");
    env.run(&["config", "unset", "limits.queued_runs"])
        .await
        .ok();
    assert_eq!(get("limits.queued_runs").await, "32\n");
    let all: Value = serde_json::from_str(&env.run(&["config", "--json"]).await.ok()).unwrap();
    assert_eq!(all["limits"]["queued_runs"], 32);
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    let env = TestEnv::new();
    env.config("# mine\n");
    let _daemon = env.daemon().await;
    for (arguments, says) in [
        (
            &["set", "limits.queud_runs", "5"][..],
            "the configuration has no key limits.queud_runs; did you mean limits.queued_runs?",
        ),
        (&["set", "limits.queued_runs", "many"], "number"),
        (
            &["set", "modle", "x"],
            "nothing was written: the configuration has no key modle; did you mean model?",
        ),
        (&["set", "frobnicate", "x"], "`crabtalk config get` lists"),
        (&["set", "limits..x", "1"], "is not a key"),
        (&["unset", "model"], "its default is in force"),
        (&["get", "limts"], "did you mean `limits`?"),
    ] {
        let arguments = [&["config"], arguments].concat();
        let error = env.run(&arguments).await.fails(1);
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let path = env.home.join("config/config.toml");
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n");
    // A concurrent edit is refused.
    env.config("# theirs\n");
    let error = env
        .run(&["config", "set", "model", "offline"])
        .await
        .fails(1);
    assert!(error.contains("reload"), "{error}");
    let stale = SetConfigMsg {
        text: "# new\n".into(),
        base: "# mine\n".into(),
        ..SetConfigMsg::default()
    };
    let error = env.connect().await.set_config(stale).await.unwrap_err();
    assert_eq!(error.code(), Some(409));
    assert_eq!(fs::read_to_string(&path).unwrap(), "# theirs\n");
}

#[tokio::test]
async fn editor_changes_the_file_and_keeps_mistakes() {
    let mut env = TestEnv::new();
    env.config("# mine\n");
    let path = env.home.join("config/config.toml");
    let _daemon = env.daemon().await;
    editor(&mut env, "# mine\n[limits]\nqueued_runs = \"x\"\n");
    let error = env.run(&["config", "edit"]).await.fails(1);
    assert!(error.contains("config.toml:3:"), "{error}");
    let draft = kept(&error);
    assert!(fs::read_to_string(&draft).unwrap().contains("\"x\""));
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n");
    fs::write(&draft, "# mine\n[limits]\nqueued_runs = 7\n").unwrap();
    let file = draft.to_str().unwrap();
    env.run(&["config", "edit", "--file", file]).await.ok();
    let now = env.run(&["config", "get", "limits.queued_runs"]).await.ok();
    assert_eq!(now, "7\n");

    // A file broken by hand is fixed the same way.
    env.config("limits = broken");
    env.run(&["daemon", "reload"]).await.fails(1);
    editor(&mut env, "[limits]\nqueued_runs = 8\n");
    env.run(&["config", "edit"]).await.ok();
    let now = env.run(&["config", "get", "limits.queued_runs"]).await.ok();
    assert_eq!(now, "8\n");
    let drafts = fs::read_dir(env.home.join("state")).unwrap();
    let drafts = drafts.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("draft-")
    });
    // Only the kept draft remains.
    assert_eq!(drafts.count(), 1);
}

#[tokio::test]
async fn agents_are_created_edited_and_removed() {
    let mut env = TestEnv::new();
    let _daemon = env.daemon().await;
    let text = "---\ndescription: Reviews code.\n---\nYou review.\n";
    let made = env.run_with(&["agents", "new", "reviewer", "--file", "-"], Some(text));
    made.await.ok();
    let listed = env.run(&["agents"]).await.ok();
    // The built-in agent remains.
    assert!(
        listed.contains("\ncrab\n") && listed.contains("Reviews code."),
        "{listed}"
    );
    let shown = env
        .run(&["agents", "show", "reviewer", "--json"])
        .await
        .ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["prompt"], "You review.");
    assert!(
        shown["rights"]["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    );

    // Invalid names are refused before writing.
    env.set("EDITOR", "touch \"$CRABTALK_HOME/edited\" &&");
    let error = env.run(&["agents", "new", "a b"]).await.fails(2);
    assert!(
        error.contains("\"a b\" is not a valid name: use 1 to 64"),
        "{error}"
    );
    assert!(!env.home.join("edited").exists());

    let file = env.home.join("config/agents/reviewer.md");
    editor(&mut env, "---\nmax_iterations: many\n---\nYou broke it.\n");
    let error = env.run(&["agents", "edit", "reviewer"]).await.fails(1);
    assert!(error.contains("reviewer.md:2:"), "{error}");
    assert!(
        fs::read_to_string(kept(&error))
            .unwrap()
            .contains("You broke it.")
    );
    assert!(fs::read_to_string(&file).unwrap().contains("You review."));

    editor(
        &mut env,
        "---\n# in short\ndescription: Short.\n---\nYou are short.\n",
    );
    env.run(&["agents", "edit", "reviewer"]).await.ok();
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("# in short\n") && text.contains("You are short."),
        "{text}"
    );
    let answer = env.run(&["ask", "--agent", "reviewer", "hello"]).await.ok();
    assert!(answer.contains("You told me: hello"), "{answer}");

    env.run(&["agents", "rm", "reviewer"]).await.ok();
    assert!(!file.exists());
    let gone = env.run(&["agents", "show", "reviewer"]).await.fails(1);
    assert!(gone.contains("there are: crab"), "{gone}");
}

#[tokio::test]
async fn mistyped_command_starts_no_daemon() {
    let env = TestEnv::new();
    for (arguments, says) in [
        (&["sumarize", "this", "file"][..], "question goes in quotes"),
        (&["confg", "get"], "did you mean `config`?"),
        (&["daemon", "restrat"], "restart"),
        (&["config", "sett", "a", "b"], "set"),
    ] {
        let usage = env.run(arguments).await.fails(2);
        assert!(usage.contains(says), "{arguments:?}: {usage}");
    }
    assert!(!env.socket().exists() && !env.home.exists());
}
