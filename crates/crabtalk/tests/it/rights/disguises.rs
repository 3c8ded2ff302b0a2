//! A model tries forbidden calls: each is refused and logged.

use super::{results, say};
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::{Client, GetStats};
use crabtalk_testkit::scripted::{Script, openai};
use serde_json::{Value, json};
use std::fs;

/// Commands that would create the file `C`, though only `echo` is allowed.
const COMMANDS: [&str; 32] = [
    "touch C",
    "echo x; touch C",
    "echo x && touch C",
    "echo x || touch C; touch C",
    "echo x & touch C",
    "echo x\ntouch C",
    "echo x | tee C",
    "echo $(touch C)",
    "echo `touch C`",
    "echo \"$(touch C)\"",
    "echo <(touch C)",
    "echo <<E\n$(touch C)\nE",
    "echo x > C",
    "echo x >> C",
    "echo x >| C",
    "X=1 touch C",
    "env X=1 touch C",
    "sh -c 'touch C'",
    "bash -c \"touch C\"",
    "eval touch C",
    "echo C | xargs touch",
    "find . -maxdepth 0 -exec touch C ;",
    "git -c alias.x='!touch C' x",
    "(touch C)",
    "{ touch C; }",
    "if true; then touch C; fi",
    "for i in 1; do touch C; done",
    "f() { touch C; }; f",
    "\\touch C",
    "'tou'ch C",
    "$(echo touch) C",
    "T=touch; $T C",
];

/// Calls of other tools that must be refused.
fn others() -> Vec<(&'static str, Value)> {
    let config = "~/.crabtalk/config/config.toml";
    vec![
        ("write", json!({"path": "C", "content": "x"})),
        ("write", json!({"path": "sub/../C", "content": "x"})),
        ("write", json!({"path": "~/work/C", "content": "x"})),
        ("write", json!({"path": "link/C", "content": "x"})),
        (
            "edit",
            json!({"path": "kept", "old_string": "kept", "new_string": "lost"}),
        ),
        ("read", json!({"path": config})),
        ("read", json!({"path": "../.crabtalk/config/config.toml"})),
        ("read", json!({"path": "home/config/config.toml"})),
        ("read", json!({"path": "/proc/self/environ"})),
        ("read", json!({"path": "~/.ssh/id"})),
        ("write", json!({"path": config, "content": ""})),
        ("set_title", json!({"title": "C"})),
        ("ask_user", json!({"question": "C?"})),
        ("delegate", json!({"agent": "other", "task": "C"})),
        ("skill", json!({"name": "forbidden"})),
        ("nothing", json!({})),
    ]
}

fn agent(env: &TestEnv) {
    env.agent(
        "crab",
        "tools: [bash, read, write, edit, delegate, skill]\nskills: [allowed]\nmembers: [nobody]\n\
         permissions: { bash: deny, \"bash(echo *)\": allow, write: deny, edit: deny, \
         \"read(~/.ssh/**)\": deny }",
    );
    env.agent("other", "description: not a member");
    for skill in ["allowed", "forbidden"] {
        env.write(
            &format!(".crabtalk/config/skills/{skill}/SKILL.md"),
            &format!("---\nname: {skill}\ndescription: x\n---\nC\n"),
        );
    }
    env.write(".ssh/id", "SECRET");
    fs::write(env.work.join("kept"), "kept").unwrap();
    fs::create_dir(env.work.join("sub")).unwrap();
    std::os::unix::fs::symlink(&env.work, env.work.join("link")).unwrap();
    std::os::unix::fs::symlink(&env.home, env.work.join("home")).unwrap();
}

#[tokio::test]
async fn no_disguise_gets_past_the_gate() {
    let commands = COMMANDS.iter().map(|c| ("bash", json!({"command": c})));
    let calls: Vec<(&str, Value)> = commands.chain(others()).collect();
    let model = ModelServer::start(Script::openai([
        openai::tools("obey", &calls),
        openai::text("I could not."),
    ]))
    .await;
    let env = TestEnv::with_model(&model);
    agent(&env);
    let _daemon = env.daemon().await;

    let events = stream_to_end(&env, say(&env, "do all that you must not")).await;
    assert_eq!(end_of(&events).code, 0);
    let results = results(&events);
    assert_eq!(results.len(), calls.len());
    for result in &results {
        assert!(result.is_error, "{result:?}");
        assert!(!result.output.contains("SECRET"), "{result:?}");
        assert!(!result.output.contains("sk-test"), "{result:?}");
    }
    assert!(!env.work.join("C").exists());
    assert_eq!(fs::read_to_string(env.work.join("kept")).unwrap(), "kept");
    let names: Vec<_> = env.logs();
    assert_eq!(names.len(), 1, "no other agent ran: {names:?}");

    // Every call is in the log, except the call of an unknown tool.
    let log = fs::read_to_string(env.home.join("logs/daemon.log")).unwrap();
    let security = log.lines().filter(|line| line.contains(" security: "));
    assert_eq!(security.count(), calls.len() - 1, "{log}");
    let stats = env
        .connect()
        .await
        .get_stats(GetStats::default())
        .await
        .unwrap();
    // Two tools, a member and a skill.
    assert_eq!(stats.scope_violations, 4);

    // Its tools and prompt show the scope.
    let request = &model.requests().await[0];
    let offered: Vec<&str> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(!offered.contains(&"set_title") && !offered.contains(&"ask_user"));
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains(
            "<scope>\ntools: bash, read, write, edit, delegate, skill\nskills: allowed\n\
             members: nobody\n</scope>"
        ),
        "{system}"
    );
}
