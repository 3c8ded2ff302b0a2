//! Real programs with a scripted model: codex and pi, one after the other,
//! since each takes as much memory as all other tests.
//!
//! `.ci/run` installs them and passes their paths; otherwise these tests are
//! skipped by name.

use super::rig::{Agent, Rig};
use crate::backend::{Answered, Backend, Launch, Prompt, Reply, Source, What};
use crate::terminal::kind::{Compress, Kinds};
use crabtalk_testkit::scripted::{Script, Server, openai, responses};
use crabtalk_testkit::tools::installed;
use serde_json::json;
use std::path::{Path, PathBuf};
use tokio::sync::Mutex;

/// Only one of these tests runs at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// An agent that finds its programs in these folders.
fn agent(rig: &Rig, name: &str, kind: &str, programs: &[PathBuf]) -> Agent {
    let folders = programs
        .iter()
        .map(|program| program.parent().unwrap().display().to_string());
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned);
    let path = folders.chain(system).collect::<Vec<_>>().join(":");
    let kinds = Kinds::new(&toml::Table::new()).unwrap();
    let env = [
        ("PATH", path.as_str()),
        ("SHELL", "/bin/sh"),
        ("PI_OFFLINE", "1"),
    ];
    Agent::of_kind(
        &rig.terminals,
        rig.folder.path(),
        name,
        kinds.get(kind).unwrap(),
        &env,
    )
}

fn write(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The model's answers, the same in both formats.
const AFTER: &str = "after the tool: done.";

async fn allowed(agent: &mut Agent, work: &Path) -> Prompt {
    agent.say("please run one").await;
    let prompt = agent.prompt().await;
    assert_eq!(
        (prompt.tool.as_str(), prompt.subject.as_str()),
        ("bash", "touch one.txt")
    );
    let taken = agent.port.reply(&prompt, &Reply::Allow).await.unwrap();
    assert!(matches!(taken, Answered::Taken(_)), "{taken:?}");
    let turn = agent.ended().await;
    let (output, error) = (turn.output.as_str(), turn.error);
    assert_eq!((output, error), (AFTER, None), "{:#?}", agent.told);
    assert!(work.join("one.txt").exists());
    prompt
}

async fn denied(agent: &mut Agent, work: &Path) {
    agent.say("please run two").await;
    let prompt = agent.prompt().await;
    assert_eq!(prompt.subject, "touch two.txt");
    let taken = agent
        .port
        .reply(&prompt, &Reply::Deny("not now".into()))
        .await
        .unwrap();
    assert!(matches!(taken, Answered::Taken(_)), "{taken:?}");
    agent.ended().await;
    assert!(!work.join("two.txt").exists());
}

/// Exercises all calls of the port in one life and a second one.
async fn works(rig: &Rig, agent: &mut Agent, cleared: bool) {
    let work = rig.folder.path().join("work");
    agent.launch(Launch::Fresh).await;
    agent.say("good day, read @notes.md first").await;
    let turn = agent.ended().await;
    assert_eq!(turn.output, "good day to you");
    assert!(turn.tokens.unwrap() > 0, "{turn:?}");
    let seen = agent.evidence(|what| matches!(what, What::Seen { .. }));
    assert_eq!(seen.source, Source::Transcript);

    allowed(agent, &work).await;
    denied(agent, &work).await;

    let compacted = agent.port.compressed(Compress::Compact).await;
    let Ok(compacted) = compacted else {
        panic!("{compacted:?}\n{}", agent.screen().await);
    };
    assert_eq!(compacted.evidence.source, Source::Transcript);
    agent.say("good day again").await;
    assert_eq!(agent.ended().await.output, "good day to you");
    let session = compacted.session;

    // After a crash, the next life knows the conversation.
    let pid = agent.port.shared().running().unwrap().pid;
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    agent
        .until("Died", |what| matches!(what, What::Died(_)).then_some(()))
        .await;
    agent
        .launch(Launch::Resume {
            session: session.clone(),
        })
        .await;
    assert_eq!(agent.session, session);
    agent.say("good day after the crash").await;
    assert_eq!(agent.ended().await.output, "good day to you");

    if cleared {
        let cleared = agent.port.compress().await.unwrap();
        assert_ne!(cleared.session, session);
        agent.say("good day, whoever you are now").await;
        assert_eq!(agent.ended().await.output, "good day to you");
    }
    let life = agent.port.shared().running().unwrap().life;
    agent.port.stop().await.unwrap();
    assert_eq!(
        crate::terminal::processes::end(&life).await,
        0,
        "nothing is left"
    );
}

#[tokio::test]
async fn codex_works_under_supervision() {
    let test = "codex_works_under_supervision";
    let (Some(codex), Some(node)) = (
        installed(test, "CRABTALK_CODEX"),
        installed(test, "CRABTALK_NODE"),
    ) else {
        return;
    };
    let _turn = TURN.lock().await;
    let Some(rig) = Rig::open(test).await else {
        return;
    };
    let run = |id: &str, file: &str| {
        let arguments = json!({
            "cmd": format!("touch {file}"), "sandbox_permissions": "require_escalated",
            "justification": "May I run the scripted command?",
        });
        responses::tool(id, "exec_command", &arguments)
    };
    let script = Script::openai([])
        .when("task title", responses::text("A title", 10))
        .when("function_call_output", responses::text(AFTER, 2000))
        .when("please run one", run("call_one", "one.txt"))
        .when("please run two", run("call_two", "two.txt"))
        .when("good day", responses::text("good day to you", 1000))
        .when("", responses::text("a short summary", 100));
    let server = Server::start(script).await;
    let mut agent = agent(&rig, "CODEX", "codex", &[codex, node]);
    let work = rig.folder.path().join("work");
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"local\"\napproval_policy = \"on-request\"\n\
         sandbox_mode = \"read-only\"\n[model_providers.local]\nname = \"local\"\n\
         base_url = \"{}\"\nwire_api = \"responses\"\n[analytics]\nenabled = false\n\
         [projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        server.url(),
        work.display()
    );
    write(&agent.folder, ".codex/config.toml", &config);
    works(&rig, &mut agent, true).await;
    assert_eq!(server.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn pi_works_under_supervision() {
    let test = "pi_works_under_supervision";
    let (Some(pi), Some(node)) = (
        installed(test, "CRABTALK_PI"),
        installed(test, "CRABTALK_NODE"),
    ) else {
        return;
    };
    let _turn = TURN.lock().await;
    let Some(rig) = Rig::open(test).await else {
        return;
    };
    let run = |id: &str, file: &str| {
        openai::tools(id, &[("bash", json!({"command": format!("touch {file}")}))])
    };
    let script = Script::openai([])
        .when("\"role\":\"tool\"", openai::text(AFTER))
        .when("please run one", run("one", "one.txt"))
        .when("please run two", run("two", "two.txt"))
        .when("good day", openai::text("good day to you"))
        .when("", openai::text("a short summary"));
    let server = Server::start(script).await;
    let mut agent = agent(&rig, "PI", "pi", &[pi, node]);
    let models = json!({"providers": {"local": {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "dummy",
        "models": [{"id": "scripted", "name": "scripted", "reasoning": false, "input": ["text"],
            "contextWindow": 100_000, "maxTokens": 8000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}],
    }}});
    write(&agent.folder, ".pi/agent/models.json", &models.to_string());
    let settings = json!({"defaultProvider": "local", "defaultModel": "scripted",
        "enableInstallTelemetry": false, "lastChangelogVersion": "0.73.1"});
    write(
        &agent.folder,
        ".pi/agent/settings.json",
        &settings.to_string(),
    );
    works(&rig, &mut agent, true).await;
}
