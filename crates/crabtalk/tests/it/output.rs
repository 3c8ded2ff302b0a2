//! The output of the command line: completions, JSON, exit codes.

use crate::rig::{CRABTALK, TestEnv, has_tools, within};
use serde_json::Value;

#[tokio::test]
async fn completions_and_manual_cover_all_commands() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.run(&["completions", shell]).await.ok();
        assert!(script.contains("_CRABTALK_COMPLETE"), "{shell}: {script}");
    }
    let page = env.run(&["man"]).await.ok();
    assert!(page.contains(".TH crabtalk 1"), "{page}");
    let pages = env.root().join("man");
    let made = env
        .run(&["man", "--dir", pages.to_str().unwrap(), "--json"])
        .await
        .ok();
    let made: Value = serde_json::from_str(&made).unwrap();
    assert!(made["pages"].as_u64() > Some(40), "{made}");
    assert!(pages.join("crabtalk-daemon-restart.1").exists());
    // None of this needs a daemon or a home.
    assert!(!env.home.exists());

    if !has_tools("completions_and_manual_cover_all_commands", &["bash"]) {
        return;
    }
    assert_eq!(completed(&env, &["daemon", "rest"]).await, "restart");
}

/// bash's completions of these words, in one line.
async fn completed(env: &TestEnv, words: &[&str]) -> String {
    let script = format!(
        "PATH=\"${{0%/*}}:$PATH\"; source <(crabtalk completions bash)\n\
         COMP_WORDS=(crabtalk {}); COMP_CWORD={}\n\
         _clap_complete_crabtalk crabtalk '{}'\n\
         echo \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len(),
        words[words.len() - 1],
    );
    let mut bash = env.program("bash");
    bash.args(["-c", &script, CRABTALK]);
    let completed = within("bash", bash.output()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stderr), "");
    String::from_utf8_lossy(&completed.stdout).trim().to_owned()
}

#[tokio::test]
async fn completions_offer_names_and_start_no_daemon() {
    if !has_tools("completions_offer_names", &["bash"]) {
        return;
    }
    let env = TestEnv::new();
    env.agent("reviewer", "");
    completed(&env, &["--agent", "rev"]).await;
    assert!(!env.home.join("daemon.sock").exists());
    let _daemon = env.daemon().await;
    env.run(&["ask", "--as", "user/shop", "hello"]).await.ok();
    for (words, want) in [
        (&["--agent", "rev"][..], "reviewer"),
        (&["agents", "show", "rev"], "reviewer"),
        (&["history", "--as", "user/sh"], "user/shop"),
        (&["history", "--project", "sh"], "shop"),
        (&["agents", "sh"], "show"),
    ] {
        assert_eq!(completed(&env, words).await, want, "{words:?}");
    }
}

#[tokio::test]
async fn errors_are_json_and_the_end_has_the_answer() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let error = async |arguments: &[&str], exit: i32| -> Value {
        let stderr = env.run(arguments).await.fails(exit);
        serde_json::from_str(stderr.lines().last().unwrap()).unwrap()
    };
    let refused = error(&["kill", "--json"], 1).await;
    assert_eq!(
        (&refused["type"], &refused["code"]),
        (&"error".into(), &404.into())
    );
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|said| !said.is_empty())
    );
    let usage = error(&["histroy", "--json"], 2).await;
    assert_eq!((&usage["code"], &usage["exit"]), (&Value::Null, &2.into()));

    let question = "/tool bash {\"command\":\"echo hi\"}";
    let told = env.run(&["ask", "--json", question]).await.ok();
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_type = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    let pieces: String = of_type("chunk")
        .map(|line| line["content"].as_str().unwrap())
        .collect();
    let end = of_type("end").next().unwrap();
    assert!(!pieces.is_empty());
    assert_eq!(end["text"], pieces.as_str());

    let binary = env.run_with(&["ask", "what is this"], Some("a\0b")).await;
    assert!(binary.fails(2).contains("is binary"));
    let much = "x".repeat(220_000);
    let noted = env.run_with(&["ask", "sum up"], Some(&much)).await;
    assert!(
        noted.stderr.contains("220 KB of standard input"),
        "{}",
        noted.stderr
    );
}

#[tokio::test]
async fn usage_errors_are_json() {
    let env = TestEnv::new();
    for line in [
        &["--json", "agents", "rm"][..],
        &["undo", "x", "--json"],
        &["--json", "daemon"],
        &["--json", "completions", "csh"],
        &["--json", "history", "--limit", "0"],
    ] {
        let said = env.run(line).await;
        assert_eq!(said.code, Some(2), "{line:?}: {said:?}");
        assert_eq!(said.stdout, "", "{line:?}");
        let error: Value = serde_json::from_str(&said.stderr).unwrap();
        assert_eq!(error["type"], "error", "{error}");
        assert_eq!(error["exit"], 2, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && !message.starts_with("error"),
            "{error}"
        );
    }
    let help = env.run(&["--json", "agents", "--help"]).await.ok();
    assert!(help.contains("Usage"), "{help}");
}

#[tokio::test]
async fn unwritable_output_is_a_failure() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    for command in [
        "--help",
        "--version",
        "help ask",
        "man",
        "completions zsh",
        "conversations --help",
        "ask hello",
        "stats",
        "config --json",
        "daemon status",
    ] {
        let line = format!("'{CRABTALK}' --no-start {command} </dev/null >/dev/full");
        let said = env.shell(&line).await.fails(1);
        assert!(
            said.contains("cannot write the answer"),
            "{command}: {said}"
        );
        // A closed reader is not a failure.
        let line = format!("{{ '{CRABTALK}' --no-start {command} </dev/null; echo $? >&2; }} | :");
        let said = env.shell(&line).await;
        assert!(
            said.stderr.trim_end().ends_with('0'),
            "{command}: {}",
            said.stderr
        );
    }
}
