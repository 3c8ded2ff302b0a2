//! Providers and models changed over the wire.

use super::{say, table};
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::{
    Client, ClientError, DeleteProviderMsg, ListModelsMsg, ListProvidersMsg, ResourceKind,
    SetActiveModelMsg, SetEnabledMsg, SetProviderMsg,
};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::{Value, json};
use std::fs;

async fn set(env: &TestEnv, name: &str, config: impl Into<String>) -> Result<(), ClientError> {
    let request = SetProviderMsg {
        name: name.into(),
        config: config.into(),
    };
    env.connect().await.set_provider(request).await
}

async fn choose(env: &TestEnv, model: &str) -> Result<(), ClientError> {
    let request = SetActiveModelMsg {
        model: model.into(),
    };
    env.connect().await.set_active_model(request).await
}

async fn delete(env: &TestEnv, name: &str) -> Result<(), ClientError> {
    let request = DeleteProviderMsg { name: name.into() };
    env.connect().await.delete_provider(request).await
}

async fn switch(
    env: &TestEnv,
    kind: ResourceKind,
    name: &str,
    enabled: bool,
) -> Result<(), ClientError> {
    let request = SetEnabledMsg {
        kind: kind.into(),
        name: name.into(),
        enabled,
    };
    env.connect().await.set_enabled(request).await
}

/// The code of a refusal.
#[track_caller]
fn code(result: Result<(), ClientError>) -> u32 {
    result.expect_err("refused").code().expect("a refusal")
}

/// Models as `name state`.
async fn models(env: &TestEnv) -> Vec<String> {
    let listed = env
        .connect()
        .await
        .list_models(ListModelsMsg {})
        .await
        .unwrap();
    let show = |m: &crabtalk_proto::ModelInfo| {
        let state = match (m.active, m.enabled) {
            (true, _) => "active",
            (false, true) => "on",
            (false, false) => "off",
        };
        format!("{} {state}", m.name)
    };
    listed.models.iter().map(show).collect()
}

fn file(env: &TestEnv) -> String {
    fs::read_to_string(env.home.join("config/config.toml")).unwrap()
}

fn table_json(server: &ModelServer, model: &str) -> String {
    json!({
        "kind": "openai", "base_url": server.url(), "api_key": "sk-json", "models": [model],
        "max_retries": 0,
    })
    .to_string()
}

#[tokio::test]
async fn provider_change_keeps_comments_and_secrets() {
    let server = ModelServer::start(Script::openai([openai::text("hi")]).repeating()).await;
    let env = TestEnv::new();
    env.config(&format!(
        "# mine\nmodel = \"one\" # the good one\n{}",
        table("a", &server, "one")
    ));
    let _daemon = env.daemon().await;
    let listed = env
        .connect()
        .await
        .list_providers(ListProvidersMsg {})
        .await
        .unwrap();
    let [a] = listed.providers.as_slice() else {
        panic!("{listed:?}");
    };
    assert!(a.active && a.enabled);
    let mut config: Value = serde_json::from_str(&a.config).unwrap();
    assert_eq!(config["api_key"], "***");
    config["models"] = json!(["one", {"name": "two", "price": {"input": 1, "output": 2}}]);
    set(&env, "a", config.to_string()).await.unwrap();
    let text = file(&env);
    assert!(
        text.starts_with("# mine\nmodel = \"one\" # the good one\n"),
        "{text}"
    );
    assert!(text.contains("api_key = \"sk-of-a\""), "{text}");
    assert_eq!(models(&env).await, ["one active", "two on"]);

    // As TOML, and by the command line.
    let toml = "kind = \"offline\"\nmodels = [\"play\"]";
    set(&env, "toml", toml).await.unwrap();
    let more = "kind = \"offline\"\nmodels = [\"toy\"]";
    set(&env, "more", more).await.unwrap();
    env.run(&["models", "use", "play"]).await.ok();
    assert!(
        file(&env).contains("model = \"play\" # the good one\n"),
        "{}",
        file(&env)
    );
    let events = stream_to_end(&env, say("", "user", "hello")).await;
    assert_eq!(end_of(&events).provider, "toml");
    assert!(
        env.run(&["models"])
            .await
            .ok()
            .contains("toy    toy   more")
    );
    env.run(&["providers", "disable", "toml"]).await.ok();
    assert_eq!(
        models(&env).await,
        ["one active", "two on", "toy on", "play off"]
    );
    env.run(&["providers", "enable", "toml"]).await.ok();
    assert!(models(&env).await.contains(&"play active".to_owned()));
    env.run(&["providers", "rm", "toml"]).await.ok();
    assert_eq!(models(&env).await, ["one active", "two on", "toy on"]);
}

#[tokio::test]
async fn invalid_provider_change_writes_nothing() {
    let server = ModelServer::start(Script::openai([openai::text("hi")]).repeating()).await;
    let env = TestEnv::new();
    env.config(&format!("model = \"one\"\n{}", table("a", &server, "one")));
    let _daemon = env.daemon().await;
    let before = file(&env);
    for (config, why) in [
        ("kind = \"nonsense\"", "an unknown kind"),
        ("", "no kind"),
        ("kind = ", "no TOML"),
        ("[1, 2]", "no table"),
        ("kind = \"openai\"\nmodels = [\"one\"]", "a taken model"),
        (
            "kind = \"openai\"\napi_key = \"***\"",
            "a mask without a secret",
        ),
        ("kind = \"openai\"\nbase_url = \"ftp://x\"", "no such URL"),
        (
            "kind = \"openai\"\nheaders = { \"a b\" = \"x\" }",
            "no header",
        ),
    ] {
        assert_eq!(code(set(&env, "new", config).await), 400, "{why}");
    }
    assert_eq!(code(set(&env, "no name", "kind = \"offline\"").await), 400);
    assert_eq!(code(delete(&env, "nobody").await), 404);
    assert_eq!(code(choose(&env, "nothing").await), 404);
    assert_eq!(code(choose(&env, "").await), 400);
    for (kind, name, want) in [
        (ResourceKind::Provider, "nobody", 404),
        (ResourceKind::Mcp, "nobody", 404),
        (ResourceKind::Skill, "nobody", 404),
        (ResourceKind::Unknown, "a", 400),
    ] {
        assert_eq!(
            code(switch(&env, kind, name, false).await),
            want,
            "{kind:?}"
        );
    }
    assert_eq!(file(&env), before);
    assert_eq!(models(&env).await, ["one active"]);

    // A concurrent edit is neither overwritten nor read incompletely.
    let theirs = format!("{before}\n# half-done");
    env.config(&theirs);
    assert_eq!(code(set(&env, "new", "kind = \"offline\"").await), 409);
    assert_eq!(file(&env), theirs);
    env.run(&["daemon", "reload"]).await.ok();
    set(&env, "new", "kind = \"offline\"").await.unwrap();
    assert!(file(&env).contains("# half-done"));
    env.config("model = ");
    assert_eq!(code(set(&env, "new", "kind = \"offline\"").await), 400);
    assert_eq!(file(&env), "model = ");
}

#[tokio::test]
async fn key_from_the_wire_is_never_shown() {
    const KEY: &str = "sk-planted-over-the-wire";
    let server = ModelServer::start(Script::openai([openai::text("hi")]).repeating()).await;
    let mut env = TestEnv::new();
    env.set("CRABTALK_LOG", "trace");
    let _daemon = env.daemon().await;
    for wrong in [
        format!("kind = \"openai\"\napi_key = \"{KEY}"),
        format!("kind: openai\napi_key: [{KEY}]"),
        format!("{{\"kind\": \"openai\", \"api_key\": \"{KEY}\", \"timeout_secs\": \"{KEY}\"}}"),
        format!(
            "kind = \"openai\"\napi_key = \"{KEY}\\n\"\nmodels = [\"m\"]\nheaders = {{ \"a b\" = \"{KEY}\" }}"
        ),
    ] {
        let error = set(&env, "a", wrong.as_str()).await.unwrap_err();
        assert_eq!(error.code(), Some(400), "{error}");
        assert!(
            !format!("{error} {error:?}").contains(KEY),
            "{wrong}: {error}"
        );
    }
    let mut right: Value = serde_json::from_str(&table_json(&server, "m")).unwrap();
    right["api_key"] = KEY.into();
    set(&env, "a", right.to_string()).await.unwrap();
    let events = stream_to_end(&env, say("", "user", "hello")).await;
    assert_eq!(end_of(&events).code, 0);
    for shown in [
        &["providers", "--json"][..],
        &["providers", "show", "a"],
        &["models", "--json"],
        &["stats", "--json"],
    ] {
        let shown = env.run(shown).await.ok();
        assert!(!shown.contains(KEY), "{shown}");
    }
    let found = env
        .shell(&format!("cd \"$CRABTALK_HOME\" && grep -rl {KEY} ."))
        .await;
    assert_eq!(found.stdout, "./config/config.toml\n");
}
