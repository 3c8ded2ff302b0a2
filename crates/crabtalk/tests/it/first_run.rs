//! `init` and `doctor` (OPS-1, OPS-2).

use crate::rig::{ModelServer, TestEnv, Tmux, has_tools};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn ready() -> Script {
    Script::openai([openai::text("ready"), openai::text("ready")])
}

fn config(env: &TestEnv) -> String {
    std::fs::read_to_string(env.home.join("config/config.toml")).unwrap_or_default()
}

/// The findings of `doctor`: check, state and message.
async fn doctor(env: &TestEnv, code: i32, more: &[&str]) -> Vec<(String, String, String)> {
    let arguments = [&["doctor", "--json"], more].concat();
    let output = env.run(&arguments).await;
    assert_eq!(output.code, Some(code), "{output:?}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            let said = format!("{} | {}", text(&line["found"]), text(&line["mend"]));
            (text(&line["check"]), text(&line["state"]), said)
        })
        .collect()
}

#[track_caller]
fn found<'a>(all: &'a [(String, String, String)], what: &str, state: &str) -> &'a str {
    let one = all.iter().find(|(w, s, _)| w == what && s == state);
    let one = one.unwrap_or_else(|| panic!("no {what} with {state} in {all:#?}"));
    &one.2
}

#[tokio::test]
async fn init_uses_and_tests_a_detected_key() {
    let model = ModelServer::start(ready()).await;
    let mut env = TestEnv::new();
    env.set("OPENAI_API_KEY", "planted-key");
    env.set("OPENAI_BASE_URL", &model.url());
    let said = env.run(&["init", "--yes"]).await;
    assert!(said.stderr.contains("gpt-5 of openai answers"), "{said:?}");
    said.ok();
    let text = config(&env);
    assert!(text.contains("api_key = \"${OPENAI_API_KEY}\""), "{text}");
    assert!(!text.contains("planted-key"), "{text}");
    // A second `init` replaces nothing, and tests again.
    let said = env.run(&["init", "--yes"]).await;
    assert!(
        said.stderr
            .contains("a provider is configured already (openai)"),
        "{said:?}"
    );
    said.ok();
    assert_eq!(config(&env), text);
    assert_eq!(model.requests().await.len(), 2);
}

#[tokio::test]
async fn init_with_options_keeps_comments() {
    let model = ModelServer::start(ready()).await;
    let env = TestEnv::new();
    env.config("# mine\n[limits]\nqueued_runs = 9 # few\n");
    env.write("work/key", "sk-of-a-file\n");
    let key = env.work.join("key").display().to_string();
    let url = model.url();
    let init = [
        "init",
        "--provider",
        "mine",
        "--kind",
        "openai",
        "--base-url",
        &url,
    ];
    let arguments = [&init[..], &["--model", "m", "--key-file", &key]].concat();
    env.run(&arguments).await.ok();
    let text = config(&env);
    assert!(
        text.contains("# mine\n[limits]\nqueued_runs = 9 # few"),
        "{text}"
    );
    assert!(text.contains("[provider.mine]"), "{text}");
    assert!(!text.contains("sk-of-a-file"), "{text}");
    let answer = env.run(&["ask", "hello"]).await.ok();
    assert_eq!(answer.trim(), "ready");
}

#[tokio::test]
async fn init_reports_missing_options() {
    let env = TestEnv::new();
    for (arguments, said) in [
        (&["init", "--yes"][..], "--kind KIND"),
        (&["init", "--kind", "antropic", "--model", "m"], "anthropic"),
        (
            &["init", "--kind", "anthropic", "--model", "m"],
            "--key-env",
        ),
        (&["init", "--kind", "ollama"], "--model"),
    ] {
        let error = env.run(arguments).await.fails(2);
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert_eq!(config(&env), "");
}

#[tokio::test]
async fn init_reports_a_failed_test_and_keeps_the_file() {
    let mut env = TestEnv::new();
    env.set("OPENAI_API_KEY", "planted-key");
    // A closed port.
    env.set("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let error = env.run(&["init", "--yes"]).await.fails(1);
    assert!(error.contains("gpt-5 does not answer"), "{error}");
    assert!(error.contains("crabtalk models test"), "{error}");
    assert!(!error.contains("planted-key"), "{error}");
    assert!(config(&env).contains("[provider.openai]"));
    let error = env.run(&["models", "test"]).await.fails(1);
    assert!(error.contains("gpt-5 does not answer"), "{error}");
}

#[tokio::test]
async fn init_asks_and_hides_the_key() {
    if !has_tools("init_asks_and_hides_the_key", &["tmux"]) {
        return;
    }
    let model = ModelServer::start(ready()).await;
    let env = TestEnv::new();
    let terminal = Tmux::open(&env, "\"$CRABTALK\" init");
    terminal.shows("Use which one? [k] >", 1).await;
    terminal.types("");
    terminal.shows("Kind (openai, ", 1).await;
    terminal.types("openai");
    terminal.shows("Address (empty for the default) >", 1).await;
    terminal.types(&model.url());
    terminal.shows("readable only by you) >", 1).await;
    terminal.types("sk-typed-$key");
    terminal.shows("Model, by the provider's name >", 1).await;
    terminal.types("m");
    let screen = terminal.shows("m of openai answers", 1).await;
    assert!(!screen.contains("sk-typed"), "{screen}");
    assert!(config(&env).contains("sk-typed"));
    let requests = model.requests().await;
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn doctor_reports_ok() {
    let model = ModelServer::start(ready()).await;
    let env = TestEnv::with_model(&model);
    // The modes that the daemon sets, not those of this test.
    for (path, mode) in [(".", 0o700), ("config/config.toml", 0o600)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(env.home.join(path), mode).unwrap();
    }
    let all = doctor(&env, 0, &[]).await;
    for what in ["home", "disk", "config", "daemon", "files", "models"] {
        found(&all, what, "ok");
    }
    let asked = model.requests().await.len();
    assert_eq!(asked, 1, "one cheap request for each provider");
    let words = env.run(&["doctor", "--offline"]).await;
    assert!(words.stderr.contains("crabtalk: OK"), "{words:?}");
    words.ok();
    assert_eq!(model.requests().await.len(), asked);
}

#[tokio::test]
async fn doctor_reports_problems_with_fixes() {
    let env = TestEnv::new();
    env.config("model = \"m\"\n[provider.p]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"sk-planted\"\nmodels = [\"m\"]\n[limits]\nqeued_runs = 3\n");
    env.write(".crabtalk/config/agents/broken.md", "---\ntools: {\n---\n");
    env.write(".crabtalk/config/skills/odd/SKILL.md", "no frontmatter\n");
    let _daemon = env.daemon().await;
    let all = doctor(&env, 1, &[]).await;
    assert!(found(&all, "config", "warning").contains("queued_runs"));
    assert!(found(&all, "models", "error").contains("providers show p"));
    assert!(found(&all, "files", "error").contains("broken.md"));
    let skills = all
        .iter()
        .filter(|one| one.0 == "files" && one.1 == "warning");
    let skills: Vec<_> = skills.map(|one| one.2.as_str()).collect();
    assert!(skills.iter().any(|said| said.contains("odd")), "{skills:?}");
    assert!(
        skills.iter().all(|said| said.contains("skills check")),
        "{skills:?}"
    );
    assert!(
        all.iter().all(|one| !one.2.contains("sk-planted")),
        "{all:#?}"
    );
    env.config("model = [\n");
    let all = doctor(&env, 1, &["--no-start"]).await;
    assert!(found(&all, "config", "error").contains("config.toml:"));
    assert!(found(&all, "config", "error").contains("crabtalk config edit"));
}

#[tokio::test]
async fn doctor_with_no_start_starts_no_daemon() {
    let env = TestEnv::new();
    let all = doctor(&env, 1, &["--no-start"]).await;
    assert!(found(&all, "daemon", "error").contains("crabtalk daemon start"));
    assert!(!env.socket().exists());
}
