//! What older clients change and list, and where they look for the daemon.

use super::*;
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::{Value, json};
use std::fs;

fn table(provider: &Message) -> Value {
    serde_json::from_str(&provider.text(3)).unwrap()
}

fn provider(name: &str, table: &Value) -> Fields {
    Fields::default().text(1, name).text(2, &table.to_string())
}

#[tokio::test]
async fn providers_are_set_without_a_kind_and_listed_with_names_of_models() {
    let replies = [openai::text("hi from it"), openai::text("still there")];
    let server = crate::rig::ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::new();
    env.config(
        "# mine\nmodel = \"dear\"\n[provider.paid]\nkind = \"anthropic\"\napi_key = \"sk-planted\"\n\
         models = [{ name = \"dear\", id = \"claude-dear\", context = 1000 }]\n",
    );
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;

    let new = json!({"base_url": server.url(), "api_key": "k", "models": ["cheap"]});
    let set = client.ask(SET_PROVIDER, provider("local", &new)).await;
    assert_eq!(set.fields(), [answer::PROVIDERS], "{set:?}");
    let listed = set.message(answer::PROVIDERS).messages(1);
    let names: Vec<String> = listed.iter().map(|p| p.text(1)).collect();
    assert_eq!(names, ["local", "paid"]);
    let shown = table(&listed[0]);
    assert_eq!(
        (&shown["kind"], &shown["models"]),
        (&json!("openai"), &json!(["cheap"]))
    );

    let list = client.ask(LIST_PROVIDERS, Fields::default()).await;
    let list = list.message(answer::PROVIDERS).messages(1);
    let paid = list.iter().find(|p| p.text(1) == "paid").unwrap();
    assert_eq!(
        (paid.number(2), paid.number(4)),
        (1, 1),
        "active and enabled"
    );
    let mut shown = table(paid);
    assert_eq!(shown["models"], json!(["dear"]));
    assert!(!paid.text(3).contains("planted"), "{}", paid.text(3));

    // What came back as it was shown loses nothing that was not.
    shown["timeout_secs"] = 5.into();
    client.ask(SET_PROVIDER, provider("paid", &shown)).await;
    let text = fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    for kept in [
        "# mine",
        "sk-planted",
        "claude-dear",
        "context = 1000",
        "timeout_secs = 5",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }

    // Today's clients are answered as ever.
    let mut modern = RawClient::connect(&env).await;
    modern.ask(200, number(1, 1).text(3, "test")).await;
    let list = modern.ask(LIST_PROVIDERS, Fields::default()).await;
    let list = list.message(answer::PROVIDERS).messages(1);
    let paid = list.iter().find(|p| p.text(1) == "paid").unwrap();
    let again = modern
        .ask(SET_PROVIDER, provider("paid", &table(paid)))
        .await;
    assert_eq!(again.fields(), [answer::PONG]);
    assert_eq!(table(paid)["models"][0]["context"], 1000);
}

/// A message of one number.
fn number(field: u64, value: u64) -> Fields {
    Fields::default().varint(field, value)
}

/// An edit of all but the prompt.
fn edit(name: &str) -> Fields {
    Fields::default()
        .text(1, name)
        .text(2, r#"{"description":"second"}"#)
        .text(3, "")
}

#[tokio::test]
async fn an_agents_prompt_outlives_an_edit_that_leaves_it_empty() {
    let env = TestEnv::new();
    env.write(
        ".crabtalk/config/agents/ada.md",
        "---\ndescription: first\n---\nYou are Ada, and you rhyme.\n",
    );
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    let info = client
        .ask(UPDATE_AGENT, edit("ada"))
        .await
        .message(answer::AGENT);
    assert_eq!(info.text(2), "second");
    let text = fs::read_to_string(env.home.join("config/agents/ada.md")).unwrap();
    assert!(text.contains("You are Ada, and you rhyme."), "{text}");
    assert!(text.contains("second") && !text.contains("first"), "{text}");
    let shown = client
        .ask(GET_AGENT, Fields::default().text(1, "ada"))
        .await;
    assert_eq!(shown.message(answer::AGENT).text(1), "ada");
}

#[tokio::test]
async fn the_built_in_agents_prompt_outlives_such_an_edit_too() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    let edited = client.ask(UPDATE_AGENT, edit("crab")).await;
    assert_eq!(edited.message(answer::AGENT).text(2), "second");
    let text = fs::read_to_string(env.home.join("config/agents/crab.md")).unwrap();
    assert!(text.contains("You are Crab"), "{text}");
}

#[tokio::test]
async fn what_was_removed_is_told_with_what_replaced_it() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = RawClient::connect(&env).await;
    let plugin = Fields::default().text(1, "search");
    for removed in [12, 20, 21, 22, 24, 25, 26, 37] {
        let (code, message) = client
            .ask(removed, Fields::default().text(1, "search"))
            .await
            .error();
        assert_eq!(code, 501, "{removed}: {message}");
        assert!(message.contains("(removed)"), "{removed}: {message}");
    }
    let (code, message) = client.ask(99, plugin).await.error();
    assert_eq!(code, 400, "{message}");
    let pong = client.ask(PING, Fields::default()).await;
    assert_eq!(pong.fields(), [answer::PONG]);
}

#[tokio::test]
async fn the_socket_is_found_at_its_older_place() {
    let env = TestEnv::new();
    let old = env.home.join("run/crabtalk.sock");
    // An older daemon that crashed left its own.
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&old).unwrap());
    let daemon = env.daemon().await;
    assert!(fs::symlink_metadata(&old).unwrap().is_symlink());
    let mut client = RawClient::connect_to(&old).await;
    let pong = client.ask(PING, Fields::default()).await;
    assert_eq!(pong.fields(), [answer::PONG]);
    drop(client);
    assert!(daemon.terminate().await.success());
    assert!(fs::symlink_metadata(&old).is_err());
}

#[tokio::test]
async fn the_owner_is_known_without_a_variable() {
    // The environment of a test has neither USER nor LOGNAME.
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let login = env.shell("id -un").await.ok();
    let mut client = RawClient::connect(&env).await;
    let config = client.ask(GET_CONFIG, Fields::default()).await;
    let config = config.message(answer::CONFIG).text(1);
    let config: Value = serde_json::from_str(&config).unwrap();
    let owners = config["owners"].as_array().unwrap();
    assert!(owners.contains(&json!(login.trim())), "{owners:?}");
}
