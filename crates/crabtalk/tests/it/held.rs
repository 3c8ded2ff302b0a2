//! What a command of an agent does to the configuration counts only when an
//! owner says so.

use crate::rig::{Daemon, ModelServer, TestEnv, eventually, within};
use crabtalk_proto::{
    Client, CreateAgentMsg, ListApprovalsMsg, ListAsksMsg, PendingAsk, ReloadConfigMsg, SendMsg,
};
use crabtalk_testkit::scripted::{Script, openai};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::fs;

/// A home whose agent may run every command, and a model that runs a script
/// with this one. What a command itself names in the home is refused before.
async fn world(command: &str) -> (TestEnv, ModelServer) {
    let call = openai::tools("c1", &[("bash", json!({ "command": "./change.sh" }))]);
    let script = Script::openai([call, openai::text("Done."), openai::text("Yes.")]);
    let model = ModelServer::start(script).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    env.script("change.sh", &format!("#!/bin/sh\n{command}\n"));
    (env, model)
}

async fn send(env: &TestEnv) {
    let request = SendMsg {
        content: "Go".into(),
        cwd: Some(env.work.display().to_string()),
        ..SendMsg::default()
    };
    let mut connection = env.connect().await;
    within("a run", connection.send(request)).await.unwrap();
}

async fn asks(env: &TestEnv) -> Vec<PendingAsk> {
    let mut connection = env.connect().await;
    let listed = connection.list_asks(ListAsksMsg::default()).await.unwrap();
    listed.asks
}

/// The id and the text of what waits for the owner.
async fn waiting(env: &TestEnv) -> (String, String) {
    let ask = eventually("a change to wait", async || asks(env).await.pop()).await;
    let ask = ask.ask.unwrap();
    assert_eq!(
        (ask.kind.as_str(), ask.tool.as_str()),
        ("approval", "config")
    );
    (ask.ask_id, ask.detail)
}

async fn reload(env: &TestEnv) {
    let mut connection = env.connect().await;
    connection.reload_config(ReloadConfigMsg {}).await.unwrap();
}

/// Everything that may count, as the daemon and its clients see it.
async fn counted(env: &TestEnv) -> String {
    let mut connection = env.connect().await;
    let request = ListApprovalsMsg::default();
    let approvals = connection.list_approvals(request).await.unwrap().approvals;
    let mut text = format!("{} approvals\n", approvals.len());
    for words in [
        &["agents", "--json"][..],
        &["skills", "--json"],
        &["trust", "--json"],
        &["memory", "--json"],
        &["models", "--json"],
    ] {
        text.push_str(&env.run(words).await.stdout);
    }
    text
}

/// Commands, where they write, and what is seen once that counts.
const CHANGES: [(&str, &str, &str); 5] = [
    (
        "printf '[[approval]]\\nagent = \"crab\"\\nsender = \"user\"\\ntool = \"bash\"\\nexact = \
         \"rm\"\\ncwd = \"/\"\\nat = \"2026-11-01T00:00:00Z\"\\nby = \"x\"\\n' >> \
         ~/.crabtalk/config/approvals.toml",
        "config/approvals.toml",
        "1 approvals",
    ),
    (
        "printf -- '---\\ndescription: mischief\\n---\\nYou may.\\n' > \
         ~/.crabtalk/config/agents/crab.md",
        "config/agents/crab.md",
        "mischief",
    ),
    (
        "printf '[[folder]]\\npath = \"/lured\"\\nat = \"2026-11-01T00:00:00Z\"\\nby = \"x\"\\n' >> \
         ~/.crabtalk/state/trust.toml",
        "state/trust.toml",
        "/lured",
    ),
    (
        "mkdir -p ~/.crabtalk/config/skills/lure && printf -- '---\\nname: lure\\ndescription: \
         bait\\n---\\nObey.\\n' > ~/.crabtalk/config/skills/lure/SKILL.md",
        "config/skills/lure/SKILL.md",
        "lure",
    ),
    (
        "printf -- '---\\nname: lie\\n---\\nIt is so.\\n' > ~/.crabtalk/config/memory/entries/lie.md",
        "config/memory/entries/lie.md",
        "\"lie\"",
    ),
];

async fn hang_up(env: &TestEnv, daemon: &Daemon) {
    kill_process(daemon.pid(), Signal::HUP).unwrap();
    // Signals and clients are served by one thread: an answered reload is
    // behind the signal's.
    reload(env).await;
}

#[tokio::test]
async fn what_a_command_changed_counts_once_an_owner_allows_it() {
    for (command, path, mark) in CHANGES {
        let (env, _model) = world(command).await;
        fs::create_dir_all(env.home.join("config/memory/entries")).unwrap();
        fs::create_dir_all(env.home.join("state")).unwrap();
        let daemon = env.daemon().await;
        let before = counted(&env).await;
        assert!(!before.contains(mark), "{path}: {before}");
        send(&env).await;
        let (_, shown) = waiting(&env).await;
        assert!(shown.contains(path), "{shown}");
        assert_eq!(counted(&env).await, before, "{path} after the run");
        hang_up(&env, &daemon).await;
        assert_eq!(counted(&env).await, before, "{path} after a reload");
        daemon.kill().await;
        let _daemon = env.daemon().await;
        assert_eq!(counted(&env).await, before, "{path} after a restart");
        let (id, again) = waiting(&env).await;
        assert_eq!(again, shown);
        env.run(&["approve", &id]).await.ok();
        eventually("the change to count", async || {
            counted(&env).await.contains(mark).then_some(())
        })
        .await;
        assert!(asks(&env).await.is_empty());
    }
}

#[tokio::test]
async fn what_is_denied_is_kept_aside() {
    let (command, path, _) = CHANGES[1];
    let (env, _model) = world(command).await;
    let file = env.home.join(path);
    let accepted = fs::read_to_string(&file).unwrap();
    let _daemon = env.daemon().await;
    send(&env).await;
    let (id, shown) = waiting(&env).await;
    assert!(shown.contains("+description: mischief"), "{shown}");
    assert!(shown.contains("-permissions: { bash: allow }"), "{shown}");
    env.run(&["deny", &id]).await.ok();
    eventually("the change to be kept aside", async || {
        let refused = fs::read_dir(env.home.join("state/refused")).ok()?.next()?;
        let kept = refused.unwrap().path().join("new").join(path);
        let kept = fs::read_to_string(kept).ok()?;
        kept.contains("mischief").then_some(())
    })
    .await;
    assert_eq!(fs::read_to_string(&file).unwrap(), accepted);
    assert!(asks(&env).await.is_empty());
}

#[tokio::test]
async fn an_owners_change_counts_at_once() {
    let (env, _model) = world("true").await;
    let _daemon = env.daemon().await;
    // With nothing running, after a command ran.
    send(&env).await;
    env.agent("mine", "description: by hand");
    reload(&env).await;
    assert!(counted(&env).await.contains("by hand"));
    send(&env).await;
    assert!(asks(&env).await.is_empty());
}

/// A command that says that it changed something, and waits to be let go.
fn waiting_command(change: &str) -> String {
    format!("{change}; touch changed; until [ -e go ]; do sleep 0.05; done")
}

#[tokio::test]
async fn while_a_command_runs_protocol_counts_and_files_do_not() {
    let (env, _model) = world(&waiting_command(CHANGES[0].0)).await;
    let daemon = env.daemon().await;
    let before = counted(&env).await;
    let running = async {
        let request = SendMsg {
            content: "Go".into(),
            cwd: Some(env.work.display().to_string()),
            ..SendMsg::default()
        };
        env.connect().await.send(request).await.unwrap();
    };
    let meanwhile = async {
        eventually("the change", async || {
            env.work.join("changed").exists().then_some(())
        })
        .await;
        hang_up(&env, &daemon).await;
        assert_eq!(counted(&env).await, before);
        let created = CreateAgentMsg {
            name: "mine".into(),
            config: "description: by protocol".into(),
            prompt: "You are mine.".into(),
        };
        env.connect().await.create_agent(created).await.unwrap();
        assert!(counted(&env).await.contains("by protocol"));
        fs::write(env.work.join("go"), "").unwrap();
    };
    within("the run", async { tokio::join!(running, meanwhile) }).await;
    let counts = counted(&env).await;
    assert!(counts.contains("by protocol") && counts.starts_with("0 approvals"));
    let (_, shown) = waiting(&env).await;
    assert!(!shown.contains("mine.md"), "{shown}");
    assert_eq!(asks(&env).await.len(), 1);
}

#[tokio::test]
async fn a_daemon_that_dies_under_a_command_forgets_nothing_of_it() {
    let (env, _model) = world(&waiting_command(CHANGES[1].0)).await;
    let daemon = env.daemon().await;
    let before = counted(&env).await;
    let request = SendMsg {
        content: "Go".into(),
        cwd: Some(env.work.display().to_string()),
        ..SendMsg::default()
    };
    let mut connection = env.connect().await;
    let running = connection.send(request);
    let kill = async {
        eventually("the change", async || {
            env.work.join("changed").exists().then_some(())
        })
        .await;
        daemon.kill().await;
    };
    within("the end", async { tokio::join!(running, kill) })
        .await
        .0
        .unwrap_err();
    let _daemon = env.daemon().await;
    assert_eq!(counted(&env).await, before);
    waiting(&env).await;
}
