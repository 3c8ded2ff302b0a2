//! Invalid files: they are not replaced by more permissive settings, and block no run.

use crate::rig::{ModelServer, TestEnv, eventually, within};
use crabtalk_proto::{Client, ReloadConfigMsg, ReloadReport, SendMsg};
use crabtalk_testkit::scripted::{Script, openai};
use rustix::fs::FileType;
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};

async fn agreeing() -> ModelServer {
    ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await
}

/// The code with which an agent's run ends.
async fn code(env: &TestEnv, agent: &str) -> u32 {
    let request = SendMsg {
        agent: agent.into(),
        content: "Hello".into(),
        ..SendMsg::default()
    };
    let mut connection = env.connect().await;
    match within("an answer", connection.send(request)).await {
        Ok(_) => 0,
        Err(error) => error.code().unwrap(),
    }
}

async fn reload(env: &TestEnv) -> ReloadReport {
    let mut connection = env.connect().await;
    let reloaded = connection.reload_config(ReloadConfigMsg {}).await;
    reloaded.unwrap()
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
}

const CRAB: &str = "---\npermissions: { bash: deny }\n---\nYou are careful.\n";

#[tokio::test]
async fn invalid_agent_file_is_refused_or_previous_one_kept() {
    let model = agreeing().await;
    for rubbish in ["", "\0\0\0\0\0\0", "---\nmodel: [\n---\n"] {
        let env = TestEnv::with_model(&model);
        let file = env.home.join("config/agents/crab.md");
        env.write(".crabtalk/config/agents/crab.md", rubbish);
        env.write(".crabtalk/config/agents/other.md", "You are another.");
        let daemon = env.daemon().await;
        // Without a known earlier state, the agent is refused by name, not replaced by a default.
        assert_eq!(code(&env, "crab").await, 409, "{rubbish:?}");
        assert_eq!(code(&env, "other").await, 0);
        assert!(daemon.stderr().contains("crab.md"), "{}", daemon.stderr());
        fs::write(&file, CRAB).unwrap();
        assert_eq!(reload(&env).await.errors.len(), 0);
        assert_eq!(code(&env, "crab").await, 0);
        // Now there is a valid state to keep.
        fs::write(&file, rubbish).unwrap();
        let report = reload(&env).await;
        assert!(report.errors[0].contains("crab.md"), "{report:?}");
        assert!(report.kept[0].contains("crab"), "{report:?}");
        assert_eq!(code(&env, "crab").await, 0);
        let rights = env.run(&["agents", "show", "crab"]).await.ok();
        assert!(rights.contains("deny"), "{rights}");
        assert_eq!(fs::read_to_string(&file).unwrap(), rubbish);
    }
}

#[tokio::test]
async fn broken_approvals_approve_nothing_and_are_kept() {
    let env = TestEnv::new();
    let file = env.home.join("config/approvals.toml");
    let good = format!(
        "[[approval]]\nagent = \"crab\"\nsender = \"user\"\ntool = \"bash\"\n\
         exact = \"touch made\"\ncwd = {:?}\nat = \"2026-11-22T08:00:00Z\"\nby = \"user\"\n",
        env.work
    );
    let broken = format!("{good}[[approval]]\nagent = \"crab\"\n");
    env.write(".crabtalk/config/approvals.toml", &broken);
    let daemon = env.daemon().await;
    let touch = async || {
        let call = r#"/tool bash {"command":"touch made"}"#;
        env.run(&["ask", "--no-stdin", call]).await
    };
    let said = touch().await.stderr;
    assert!(said.contains("denied"), "{said}");
    assert!(
        daemon.stderr().contains("approvals.toml"),
        "{}",
        daemon.stderr()
    );
    let report = reload(&env).await;
    assert!(report.errors[0].contains("approvals.toml"), "{report:?}");
    touch().await;
    assert!(!env.work.join("made").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    // A repaired file takes effect; a broken one again keeps the last valid state.
    fs::write(&file, &good).unwrap();
    assert_eq!(reload(&env).await.errors.len(), 0);
    touch().await.ok();
    fs::remove_file(env.work.join("made")).unwrap();
    fs::write(&file, &broken).unwrap();
    assert_eq!(reload(&env).await.errors.len(), 1);
    touch().await.ok();
    assert!(env.work.join("made").exists());
}

#[tokio::test]
async fn reload_reports_start_errors_and_retained_settings() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let config = env.home.join("config/config.toml");
    let good = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("modle = \"x\"\n{good}")).unwrap();
    let report = reload(&env).await;
    assert!(report.warnings[0].contains("modle"), "{report:?}");
    assert_eq!((report.errors.len(), report.kept.len()), (0, 0));
    // A provider without its key.
    let keyless = "[provider.other]\nkind = \"openai\"\napi_key = \"${NO_SUCH_KEY}\"\n\
                   models = [\"another\"]\n";
    fs::write(&config, format!("{good}\n{keyless}")).unwrap();
    let report = reload(&env).await;
    assert!(report.warnings[0].contains("NO_SUCH_KEY"), "{report:?}");
    fs::write(&config, "model = [").unwrap();
    let report = reload(&env).await;
    assert!(report.errors[0].contains("config.toml"), "{report:?}");
    assert_eq!(report.kept.len(), 1, "{report:?}");
    assert_eq!(code(&env, "").await, 0);
}

/// The files that a daemon, a run or a client reads.
const READ: [&str; 17] = [
    "config/agents/other.md",
    "config/approvals.toml",
    "config/crons.toml",
    "config/subscriptions.toml",
    "config/Crab.md",
    "config/memory/MEMORY.md",
    "config/memory/entries/a.md",
    "config/skills/greet/SKILL.md",
    "state/trust.toml",
    "state/delegates",
    "state/events.jsonl",
    "state/mcp.json",
    "state/projects.toml",
    "state/remotes.toml",
    "state/swept.json",
    "../work/AGENTS.md",
    "../work/Crab.md",
];

#[tokio::test]
async fn named_pipes_in_place_of_files_block_nothing() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    for file in READ {
        pipe(&env.home.join(file));
    }
    let daemon = env.daemon().await;
    let send = env.run(&["ask", "Hello"]).await;
    assert_eq!(send.stdout.trim(), "Yes.", "{send:?}");
    reload(&env).await;
    kill_process(daemon.pid(), Signal::HUP).unwrap();
    for words in [
        vec!["skills"],
        vec!["memory"],
        vec!["agents"],
        vec!["approvals"],
        vec!["trust"],
        vec!["cron"],
        vec!["subscriptions"],
        vec!["mcps"],
        vec!["remote"],
    ] {
        env.run(&words).await;
    }
    // A broken configuration prevents the start, with the reason.
    fs::remove_file(env.home.join("config/config.toml")).unwrap();
    pipe(&env.home.join("config/config.toml"));
    let report = reload(&env).await;
    assert!(report.errors[0].contains("is a pipe"), "{report:?}");
    assert!(daemon.terminate().await.success());
    let started = env.run(&["daemon", "run"]).await;
    assert!(started.stderr.contains("is a pipe"), "{started:?}");
    started.fails(1);
    eventually("nothing left", async || {
        (!env.socket().exists()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn list_of_a_broken_file_reports_it() {
    let env = TestEnv::new();
    env.write(".crabtalk/config/crons.toml", "[[cron]\nid = 1\n");
    env.write(".crabtalk/config/subscriptions.toml", "\0\0");
    let _daemon = env.daemon().await;
    for (command, file) in [
        ("cron", "crons.toml"),
        ("subscriptions", "subscriptions.toml"),
    ] {
        let listed = env.run(&[command, "list"]).await;
        assert_eq!(listed.code, Some(0), "{listed:?}");
        let said = &listed.stderr;
        assert!(said.contains("not active") && said.contains(file), "{said}");
        let all = format!("{}{said}", listed.stdout);
        assert!(!all.contains("add"), "nothing can be added now: {all}");
    }
}

/// Lost records reset the numbers of events. New events are not mistaken for retries.
#[tokio::test]
async fn events_after_lost_records_start_runs() {
    let env = TestEnv::new();
    let mut daemon = env.daemon().await;
    env.run(&["subscriptions", "add", "x"]).await.ok();
    for payload in ["before", "after"] {
        env.run(&["publish", "x", payload]).await.ok();
        eventually("its run", async || {
            let said = env.run(&["history", "--as", "event:x"]).await.stdout;
            said.contains(payload).then_some(())
        })
        .await;
        daemon.terminate().await;
        for file in ["records.db", "records.db-wal", "records.db-shm"] {
            // Some files do not exist while no daemon runs.
            let _ = fs::remove_file(env.home.join("state").join(file));
        }
        daemon = env.daemon().await;
    }
}

/// Every regular file below a folder, by relative path.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => waiting.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// A damaged file affects no other file.
#[tokio::test]
async fn garbage_files_do_not_prevent_start() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let daemon = env.daemon().await;
    for words in [
        &["ask", "hello"][..],
        &["ask", "/tool bash {\"command\":\"seq 30000\"}"],
        &["compact"],
        &["ask", "--as", "tg:1", "from elsewhere"],
        &["ask", "--as", "tg:2", "to be removed"],
        &["conversations", "rm", "--as", "tg:2"],
        &["memory", "add", "dog", "Rex is a dog"],
        &["cron", "add", "0 0 1 1 *", "a happy new year"],
        &["subscriptions", "add", "x"],
        &["publish", "x", "it happened"],
        &["tokens", "add", "phone"],
        &["trust", "add", "."],
    ] {
        env.run(words).await.ok();
    }
    let fired = async || {
        let told = env.run(&["subscriptions"]).await.ok();
        told.contains("the last: ok").then_some(())
    };
    eventually("the event's run", fired).await;
    daemon.terminate().await;
    let listed = async || {
        let request = crabtalk_proto::ListConversationsMsg::default();
        let listed = env.connect().await.list_conversations(request).await;
        let listed = listed.unwrap().conversations.into_iter();
        let mut pairs: Vec<String> = listed.map(|one| one.sender).collect();
        pairs.sort();
        pairs
    };
    let whole = files_below(&env.home);
    let logs = env.logs();
    for file in &whole {
        let place = file.strip_prefix(&env.home).unwrap();
        // A broken configuration prevents the start; kept contents are named by their hash.
        let passed_over = ["config/config.toml", "logs", "state/accepted/objects"];
        // The database creates and removes these.
        let is_beside = |name: &str| place.to_string_lossy().ends_with(name);
        if passed_over.iter().any(|other| place.starts_with(other))
            || is_beside(".db-wal")
            || is_beside(".db-shm")
        {
            continue;
        }
        let content = fs::read(file).unwrap();
        let others = || {
            logs.iter()
                .filter(|log| *log != file)
                .map(|log| fs::read(log).unwrap())
        };
        let before: Vec<_> = others().collect();
        fs::write(file, b"\xff\0 garbage\n{\"more\n").unwrap();
        let daemon = env.daemon().await;
        let seen = listed().await;
        assert_eq!(seen.len(), before.len(), "{}: {seen:?}", place.display());
        assert!(daemon.terminate().await.success(), "{}", place.display());
        assert_eq!(others().collect::<Vec<_>>(), before, "{}", place.display());
        fs::write(file, content).unwrap();
    }
    let _daemon = env.daemon().await;
    assert_eq!(listed().await.len(), logs.len());
}

#[tokio::test]
async fn doctor_names_damaged_records() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    env.run(&["ask", "hello"]).await.ok();
    daemon.terminate().await;
    let file = env.home.join("state/records.db");
    for beside in ["records.db-wal", "records.db-shm"] {
        let _ = fs::remove_file(file.with_file_name(beside));
    }
    fs::write(&file, vec![b'x'; 16 * 1024]).unwrap();
    let _daemon = env.daemon().await;
    let said = env.run(&["doctor"]).await;
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("records.db"), "{said}");
    let history = env.run(&["history"]).await.ok();
    assert!(
        history.contains("hello"),
        "conversations do not depend on it: {history}"
    );
}

/// Opens the records of a home without a running daemon.
fn records(env: &TestEnv) -> rusqlite::Connection {
    rusqlite::Connection::open(env.home.join("state/records.db")).unwrap()
}

#[tokio::test]
async fn doctor_names_a_cut_audit_and_a_new_chain_mends_it() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    for name in ["one", "two"] {
        env.run(&["tokens", "add", name]).await.ok();
    }
    daemon.terminate().await;
    let db = records(&env);
    let last = "DELETE FROM audit WHERE n = (SELECT max(n) FROM audit)";
    assert_eq!(db.execute(last, []).unwrap(), 1);
    drop(db);
    let _daemon = env.daemon().await;
    let doctor = async || {
        let output = env.run(&["doctor", "--offline", "--json"]).await;
        let findings = output.stdout.lines();
        let findings = findings.map(|line| serde_json::from_str(line).unwrap());
        findings
            .filter(|finding: &serde_json::Value| {
                finding["check"] == "audit" && finding["state"] == "error"
            })
            .collect::<Vec<_>>()
    };
    let [broken] = &doctor().await[..] else {
        panic!("the audit is not named");
    };
    assert_eq!(broken["mend"], "crabtalk audit new-chain");
    env.run(&["tokens", "add", "three"]).await.fails(1);
    env.run(&["audit", "new-chain"]).await.ok();
    assert_eq!(doctor().await.len(), 0);
    env.run(&["tokens", "add", "three"]).await.ok();
}
