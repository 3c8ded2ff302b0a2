//! Skills: the slash command, scope, and the tools that a trusted skill allows.

use super::{message, say, told};
use crate::rig::{ModelServer, TestEnv, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, GetStats, ListSkillsMsg, ReplyToAsk, SendMsg, SkillTrust, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use serde_json::json;

fn skill(env: &TestEnv, folder: &str, name: &str, rest: &str) {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{rest}");
    env.write(&format!("{folder}/{name}/SKILL.md"), &text);
}

const INSTALLED: &str = ".crabtalk/config/skills";

#[tokio::test]
async fn slash_command_brings_the_skill_to_the_model() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: all");
    env.agent("narrow", "skills: [\"check-*\"]");
    let _daemon = env.daemon().await;
    // The skill is available at once, without a reload.
    skill(&env, INSTALLED, "greet", "---\nGreet $ARGUMENTS warmly.\n");
    say(&env, "user", "/greet Bob").await;
    let request = told(model.requests().await.last().unwrap());
    assert!(request.contains("<skill"), "{request}");
    assert!(request.contains("Greet Bob warmly."), "{request}");
    // Text that does not name a skill is sent unchanged.
    say(&env, "user", "/etc is a folder").await;
    let request = told(model.requests().await.last().unwrap());
    assert!(request.contains("/etc is a folder"), "{request}");

    let before = model.requests().await.len();
    let refused = SendMsg {
        agent: "narrow".into(),
        content: "/greet Bob".into(),
        ..SendMsg::default()
    };
    let refused = env.connect().await.send(refused).await.unwrap_err();
    assert_eq!(refused.code(), Some(403), "{refused:?}");
    assert!(refused.to_string().contains("greet"), "{refused}");
    assert_eq!(model.requests().await.len(), before, "it reached the model");
    let stats = env
        .connect()
        .await
        .get_stats(GetStats::default())
        .await
        .unwrap();
    assert_eq!(stats.scope_violations, 1);
    assert!(env.run(&["skills"]).await.ok().contains("greet"));
    assert!(
        env.run(&["skills", "show", "greet"])
            .await
            .ok()
            .contains("warmly")
    );
}

/// The outcome of a command of a run.
#[derive(Debug, PartialEq, Eq)]
enum Tried {
    Ran,
    Asked,
    Refused,
}

/// Runs an agent whose model tries `echo crab`, and denies what it asks.
async fn try_it(env: &TestEnv, agent: &str, content: &str) -> Tried {
    let mut connection = env.connect().await;
    let request = StreamMsg {
        agent: agent.into(),
        ..message(env, "user", content)
    };
    let mut events = std::pin::pin!(connection.stream(request));
    let mut tried = None;
    let run = async {
        while let Some(event) = events.next().await {
            match event.unwrap().event {
                Some(Event::AskUser(ask)) => {
                    assert_eq!((ask.kind.as_str(), ask.tool.as_str()), ("approval", "bash"));
                    tried = Some(Tried::Asked);
                    let reply = ReplyToAsk {
                        agent: agent.into(),
                        content: "Deny".into(),
                        ask_id: Some(ask.ask_id),
                        ..ReplyToAsk::default()
                    };
                    env.connect().await.reply_to_ask(reply).await.unwrap();
                }
                Some(Event::ToolResult(result)) if tried.is_none() => {
                    let ran = !result.is_error && result.output.contains("crab");
                    tried = Some(if ran { Tried::Ran } else { Tried::Refused });
                }
                Some(Event::End(end)) => assert_eq!(end.code, 0, "{end:?}"),
                _ => {}
            }
        }
    };
    within("a run", run).await;
    tried.unwrap()
}

#[tokio::test]
async fn allowed_tools_hold_for_an_unchanged_trusted_skill() {
    let replies = (0..16).flat_map(|at| {
        let echo = json!({"command": "echo crab"});
        let call = openai::tools(&format!("c{at}"), &[("bash", echo)]);
        [call, openai::text("Done.")]
    });
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: asks\nmode: ask");
    env.agent("strict", "permissions: { bash: deny }");
    let _daemon = env.daemon().await;
    let rest = "allowed-tools: Bash(echo:*)\n---\nSay crab.\n";
    skill(&env, INSTALLED, "say", rest);
    skill(&env, "work/.crabtalk/skills", "shout", rest);
    let installed = env.user_home.join(INSTALLED).join("say");
    let trust = async |what: &str, path: &std::path::Path| {
        let path = path.to_str().unwrap();
        env.run(&["trust", what, path]).await.ok();
    };
    assert_eq!(try_it(&env, "crab", "/say").await, Tried::Asked);
    trust("add", &installed).await;
    assert_eq!(try_it(&env, "crab", "/say").await, Tried::Ran);
    // Allowed only while that skill is used.
    assert_eq!(try_it(&env, "crab", "say crab").await, Tried::Asked);
    // A `deny` takes precedence.
    assert_eq!(try_it(&env, "strict", "/say").await, Tried::Refused);
    // A project's skill allows nothing, even in a trusted project.
    trust("add", &env.work.join(".crabtalk/skills/shout")).await;
    trust("add", &env.work).await;
    assert_eq!(try_it(&env, "crab", "/shout").await, Tried::Asked);
    // Any change ends the trust.
    env.write(&format!("{INSTALLED}/say/notes.txt"), "new");
    assert_eq!(try_it(&env, "crab", "/say").await, Tried::Asked);
    trust("add", &installed).await;
    assert_eq!(try_it(&env, "crab", "/say").await, Tried::Ran);
    trust("rm", &installed).await;
    assert_eq!(try_it(&env, "crab", "/say").await, Tried::Asked);
}

#[tokio::test]
async fn list_has_the_project_trust_and_switches() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    for name in ["known", "changing"] {
        skill(&env, INSTALLED, name, "---\nDo it.\n");
        let folder = env.user_home.join(INSTALLED).join(name);
        let trust = ["trust", "add", folder.to_str().unwrap()];
        env.run(&trust).await.ok();
    }
    skill(&env, INSTALLED, "changing", "---\nDo something else.\n");
    skill(&env, "work/.crabtalk/skills", "local", "---\nDo it here.\n");
    env.run(&["skills", "disable", "known"]).await.ok();
    let list = async |cwd: &str| {
        let request = ListSkillsMsg {
            cwd: Some(cwd.into()),
        };
        env.connect().await.list_skills(request).await
    };
    let listed = list(env.work.to_str().unwrap()).await.unwrap().skills;
    let listed = listed.iter();
    let mut states: Vec<_> = listed
        .map(|one| (one.name.as_str(), one.trust(), one.enabled))
        .collect();
    states.sort_by_key(|(name, ..)| *name);
    let want = [
        ("changing", SkillTrust::Changed, true),
        ("known", SkillTrust::Trusted, false),
        ("local", SkillTrust::None, true),
    ];
    assert_eq!(states, want);
    for cwd in ["relative", "/not/there", "/etc/hostname"] {
        let refused = list(cwd).await.unwrap_err();
        assert_eq!(refused.code(), Some(400), "{cwd}: {refused}");
    }
}
