//! Skills: the slash command, scope, and what a trusted one may do.

use super::{message, say, told};
use crate::rig::{ModelServer, TestEnv, end_of, eventually, stream_to_end, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, GetStats, ListSkillsMsg, ReplyToAsk, SendMsg, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

fn skill(env: &TestEnv, folder: &str, name: &str, rest: &str) {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{rest}");
    env.write(&format!("{folder}/{name}/SKILL.md"), &text);
}

const INSTALLED: &str = ".crabtalk/config/skills";

#[tokio::test]
async fn skills_that_cannot_be_written_fail_the_import_and_are_named() {
    let env = TestEnv::new();
    skill(&env, "theirs", "greet", "---\nGreet.\n");
    let skills = env.home.join("config/skills");
    fs::create_dir_all(skills.parent().unwrap()).unwrap();
    // A folder in which nobody makes anything, and a file in the folder's place.
    symlink("/proc/self/fdinfo", &skills).unwrap();
    let theirs = env.home.with_file_name("theirs");
    let import = ["skills", "import", theirs.to_str().unwrap()];
    let error = env.run(&import).await.fails(1);
    assert!(error.contains("1 skill could not be written to"), "{error}");
    assert!(error.contains("/greet: "), "{error}");
    let json = [&import[..], &["--json"]].concat();
    let told = env.run(&json).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains("\"failed\":true"), "{told:?}");
    fs::remove_file(&skills).unwrap();
    fs::write(&skills, "mine").unwrap();
    let error = env.run(&import).await.fails(1);
    assert!(error.contains("config/skills"), "{error}");
}

#[tokio::test]
async fn a_slash_command_brings_the_skill_to_the_model() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: all");
    env.agent("narrow", "skills: [\"check-*\"]");
    let _daemon = env.daemon().await;
    // It is there at once, without a reload.
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

/// Installed ones come first, then the folders of the configuration in their order,
/// whatever their names (0036).
#[tokio::test]
async fn of_skills_of_one_name_that_of_the_first_folder_counts() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "description: all");
    for folder in ["alpha", "zulu"] {
        skill(
            &env,
            folder,
            "greet",
            &format!("---\nGreet as {folder} does.\n"),
        );
    }
    skill(&env, "alpha", "wave", "---\nWave as alpha does.\n");
    let config = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    let order = |first: &str, second: &str| {
        let [first, second] = [first, second].map(|folder| env.user_home.join(folder));
        env.config(&format!(
            "{config}\n[skills]\npaths = [{first:?}, {second:?}]\n"
        ));
    };
    order("zulu", "alpha");
    let daemon = env.daemon().await;
    let told = async |content: &str| {
        say(&env, "user", content).await;
        told(model.requests().await.last().unwrap())
    };
    let greeting = told("/greet").await;
    assert!(greeting.contains("Greet as zulu does."), "{greeting}");
    let wave = told("/wave").await;
    assert!(wave.contains("Wave as alpha does."), "{wave}");
    // The other one is told: by the daemon that starts, by the list, by what looks for
    // faults, and by a reload.
    let passed_over = async || daemon.stderr().contains("passed over").then_some(());
    eventually("the daemon to tell of it", passed_over).await;
    assert!(
        daemon.stderr().contains("alpha/greet"),
        "{}",
        daemon.stderr()
    );
    let found = env.run(&["doctor"]).await.stdout;
    assert!(found.contains("second skill named `greet`"), "{found}");
    let listed = env.run(&["skills"]).await;
    let all = format!("{}{}", listed.stdout, listed.stderr);
    assert!(
        all.contains("alpha/greet") && all.contains("zulu/greet"),
        "{all}"
    );

    order("alpha", "zulu");
    let reloaded = env.run(&["daemon", "reload"]).await;
    let all = format!("{}{}", reloaded.stdout, reloaded.stderr);
    assert!(all.contains("zulu/greet"), "not by the list alone: {all}");
    let greeting = told("/greet").await;
    assert!(greeting.contains("Greet as alpha does."), "{greeting}");

    skill(&env, INSTALLED, "greet", "---\nGreet as installed.\n");
    let greeting = told("/greet").await;
    assert!(greeting.contains("Greet as installed."), "{greeting}");
}

/// `mcp` is a name as any other: of an agent, of a skill, of a server.
#[tokio::test]
async fn no_name_is_kept_for_mcp() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    let config = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{config}\n[mcp.mcp]\ncommand = \"true\"\n"));
    env.agent("mcp", "skills: [mcp]\nmcps: [mcp]");
    skill(
        &env,
        INSTALLED,
        "mcp",
        "---\nExplain $ARGUMENTS to a crab.\n",
    );
    let _daemon = env.daemon().await;
    let request = StreamMsg {
        agent: "mcp".into(),
        ..message(&env, "user", "/mcp servers")
    };
    let end = end_of(&stream_to_end(&env, request).await);
    assert_eq!(end.code, 0, "{end:?}");
    let request = told(model.requests().await.last().unwrap());
    assert!(request.contains("Explain servers to a crab."), "{request}");
    for list in ["agents", "skills", "mcps"] {
        let listed = env.run(&[list]).await.ok();
        assert!(listed.contains("mcp"), "{list}: {listed}");
    }
}

/// What became of a command that a run tried.
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
async fn allowed_tools_hold_for_a_trusted_skill_as_it_was() {
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
    // Only while that skill is at work.
    assert_eq!(try_it(&env, "crab", "say crab").await, Tried::Asked);
    // Never over a `deny`.
    assert_eq!(try_it(&env, "strict", "/say").await, Tried::Refused);
    // Never from a project, even a trusted one.
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
async fn the_list_shows_the_project_at_hand_and_who_is_trusted() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    for name in ["known", "changing", "plain"] {
        skill(&env, INSTALLED, name, "---\nDo it.\n");
    }
    let project = env.work.strip_prefix(&env.user_home).unwrap();
    let project = format!("{}/.crabtalk/skills", project.display());
    skill(&env, &project, "local", "---\nDo it here.\n");
    for name in ["known", "changing"] {
        let folder = env.user_home.join(INSTALLED).join(name);
        let folder = folder.to_str().unwrap();
        env.run(&["trust", "add", folder]).await.ok();
    }
    skill(&env, INSTALLED, "changing", "---\nDo something else.\n");
    let work = env.work.display().to_string();
    let elsewhere = env.user_home.display().to_string();
    let states = async |cwd: &str| {
        let listed = env.run(&["skills", "--json", "--cwd", cwd]).await.ok();
        let state = |line: &str| {
            let skill: serde_json::Value = serde_json::from_str(line).unwrap();
            let of = |field: &str| skill[field].as_str().unwrap().to_owned();
            format!("{} {} {}", of("name"), of("kind"), of("trusted"))
        };
        let mut states: Vec<String> = listed.lines().map(state).collect();
        states.sort();
        states
    };
    let installed = [
        "changing installed changed since",
        "known installed yes",
        "plain installed no",
    ];
    assert_eq!(states(&elsewhere).await, installed);
    assert_eq!(
        states(&work).await,
        [installed[0], installed[1], "local project no", installed[2]]
    );
    let shown = env.run(&["skills", "show", "local", "--cwd", &work]).await;
    assert!(shown.ok().contains("Do it here."));
    env.run(&["trust", "add", &work]).await.ok();
    assert!(
        states(&work)
            .await
            .contains(&"local project yes".to_owned())
    );

    for (word, enabled) in [("disable", false), ("enable", true)] {
        env.run(&["skills", word, "plain"]).await.ok();
        let listed = env.run(&["skills", "--json"]).await.ok();
        let plain = listed.lines().find(|line| line.contains("\"plain\""));
        let plain: serde_json::Value = serde_json::from_str(plain.unwrap()).unwrap();
        assert_eq!(plain["enabled"], enabled, "{plain}");
    }

    // A path of a client is looked at before anything is done with it.
    for cwd in ["relative", "../..", "/not/there", "", "/etc/hostname"] {
        let request = ListSkillsMsg {
            cwd: Some(cwd.into()),
        };
        let refused = env.connect().await.list_skills(request).await.unwrap_err();
        assert_eq!(refused.code(), Some(400), "{cwd}: {refused}");
    }
}
