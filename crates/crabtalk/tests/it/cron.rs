//! Cron entries in real time: due in a second, or started manually.

mod failures;
mod notified;
mod tool;

use crate::rig::{ModelServer, TestEnv, entries, eventually, within};
use crabtalk_proto::{
    Client, CreateCronMsg, CronInfo, CronRun, ListCronRunsMsg, ListCronsMsg, ReloadConfigMsg,
    RunCronMsg,
};
use crabtalk_testkit::scripted::{Script, openai};
use std::fs;
use std::path::PathBuf;

fn crons_file(env: &TestEnv) -> PathBuf {
    env.home.join("config/crons.toml")
}

async fn create(env: &TestEnv, request: CreateCronMsg) -> CronInfo {
    let mut connection = env.connect().await;
    within("an entry", connection.create_cron(request))
        .await
        .unwrap()
}

/// An entry that is due on New Year's Eve at the earliest.
fn yearly(content: &str) -> CreateCronMsg {
    CreateCronMsg {
        schedule: "59 23 31 12 *".into(),
        content: Some(content.into()),
        ..CreateCronMsg::default()
    }
}

async fn listed(env: &TestEnv) -> Vec<CronInfo> {
    let mut connection = env.connect().await;
    connection.list_crons(ListCronsMsg {}).await.unwrap().crons
}

async fn rows(env: &TestEnv, id: u64) -> Vec<CronRun> {
    let mut connection = env.connect().await;
    let request = ListCronRunsMsg {
        id: Some(id),
        limit: 0,
    };
    connection.list_cron_runs(request).await.unwrap().runs
}

async fn fire(env: &TestEnv, id: u64) {
    let mut connection = env.connect().await;
    connection.run_cron(RunCronMsg { id }).await.unwrap();
}

/// The last run of an entry, after its end.
async fn over(env: &TestEnv, id: u64) -> CronRun {
    eventually("a run to end", async || {
        let last = rows(env, id).await.into_iter().next()?;
        (last.outcome != "running").then_some(last)
    })
    .await
}

/// Starts an entry manually and waits for the end of the run.
async fn fired(env: &TestEnv, id: u64) -> CronRun {
    fire(env, id).await;
    over(env, id).await
}

async fn reload(env: &TestEnv) -> (Vec<String>, Vec<String>) {
    let mut connection = env.connect().await;
    let report = connection.reload_config(ReloadConfigMsg {}).await.unwrap();
    (report.warnings, report.errors)
}

#[tokio::test]
async fn entry_due_in_a_second_fires_once_and_is_removed() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let said = env
        .run(&["cron", "add", "--in", "1s", "stretch", "your", "legs"])
        .await;
    assert!(
        said.stderr.contains("entry 1: next run today at") || said.stderr.contains("tomorrow"),
        "{}",
        said.stderr
    );
    let run = eventually("the run", async || rows(&env, 1).await.into_iter().next()).await;
    assert!(
        !run.due.is_empty() && run.said == "stretch your legs",
        "{run:?}"
    );
    let run = over(&env, 1).await;
    assert_eq!((run.outcome.as_str(), run.run), ("ok", 1));
    assert!(run.duration_ms > 0 && run.tokens > 0, "{run:?}");
    eventually("the entry to go", async || {
        listed(&env).await.is_empty().then_some(())
    })
    .await;
    let file = fs::read_to_string(crons_file(&env)).unwrap();
    assert!(!file.contains("[[cron]]"), "{file}");
    let history = entries(&env, "crab", "cron").await;
    assert_eq!(history[0].content, "stretch your legs");
    // Its number is not reused.
    assert_eq!(create(&env, yearly("x")).await.id, 2);
}

#[tokio::test]
async fn entries_are_added_listed_paused_and_removed() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let folder = env.work.display().to_string();
    let add = [
        "cron",
        "add",
        "0 9 * * 1-5",
        "review",
        "--agent",
        "crab",
        "--cwd",
        &folder,
        "--zone",
        "Europe/Berlin",
        "--quiet",
        "23:00-07:00",
        "look at the open branches",
    ];
    let said = env.run(&add).await;
    assert!(said.stderr.contains("entry 1: "), "{}", said.stderr);
    let list = env.run(&["cron", "list"]).await.ok();
    for want in [
        "at 09:00 (in",
        "/review look at the open branches",
        "0 9 * * 1-5 Europe/Berlin",
    ] {
        assert!(list.contains(want), "{want}: {list}");
    }
    let file = fs::read_to_string(crons_file(&env)).unwrap();
    for want in [
        "skill = \"review\"",
        "by = \"user\"",
        "quiet_start = \"23:00\"",
    ] {
        assert!(file.contains(want), "{want}: {file}");
    }
    env.run(&["cron", "pause", "1"]).await;
    let info = listed(&env).await.remove(0);
    assert!(info.paused && info.next_fire.is_empty() && info.next_in_words == "paused");
    let said = env.run(&["cron", "resume", "1"]).await;
    assert!(said.stderr.contains("resumed; next run"), "{}", said.stderr);
    let edit = [
        "cron",
        "edit",
        "1",
        "--schedule",
        "@daily",
        "say",
        "goodbye",
    ];
    env.run(&edit).await.ok();
    let edited = listed(&env).await.remove(0);
    assert_eq!(
        (edited.schedule.as_str(), edited.content.as_str()),
        ("@daily", "say goodbye")
    );
    let json = env.run(&["cron", "list", "--json"]).await.ok();
    let json: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(json["cwd"].as_str(), Some(folder.as_str()));
    env.run(&["cron", "rm", "1"]).await;
    assert_eq!(listed(&env).await, []);
    let none = env.run(&["cron", "rm", "1"]).await.fails(1);
    assert!(none.contains("cron entry 1 does not exist"), "{none}");
    let times = env
        .run(&["--json", "cron", "test", "30 2 * * *", "-n", "3"])
        .await
        .ok();
    assert_eq!(times.lines().count(), 3, "{times}");
    let bad = env.run(&["cron", "add", "61 * * * *", "x"]).await.fails(1);
    assert!(
        bad.contains("the minute field") && bad.contains("0 to 59"),
        "{bad}"
    );
}

#[tokio::test]
async fn forbidden_cron_calls_are_refused_and_recorded() {
    let env = TestEnv::new();
    env.agent("careful", "permissions: { \"bash(echo *)\": allow }");
    let _daemon = env.daemon().await;
    let entry = |command: &str| CreateCronMsg {
        agent: "careful".into(),
        sender: "cron:a".into(),
        ..yearly(&format!("/tool bash {{\"command\":\"{command}\"}}"))
    };
    let may = create(&env, entry("echo yes")).await.id;
    let run = fired(&env, may).await;
    assert_eq!(
        (run.outcome.as_str(), run.refused.len()),
        ("ok", 0),
        "{run:?}"
    );
    let may_not = create(&env, entry("touch no")).await.id;
    let run = fired(&env, may_not).await;
    assert_eq!(run.outcome, "failed", "{run:?}");
    assert!(run.refused[0].starts_with("bash: denied"), "{run:?}");
    let runs = env.run(&["cron", "runs", "2"]).await.ok();
    assert!(runs.contains("bash: denied"), "{runs}");
}

#[tokio::test]
async fn asks_wait_in_the_inbox_if_configured() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let entry = CreateCronMsg {
        asks: Some("inbox".into()),
        cwd: Some(env.work.display().to_string()),
        ..yearly("/tool bash {\"command\":\"touch made\"}")
    };
    let id = create(&env, entry).await.id;
    fire(&env, id).await;
    eventually("the ask", async || {
        let asks = env.run(&["asks"]).await.ok();
        asks.contains("touch made").then_some(())
    })
    .await;
    env.run(&["approve", "--yes"]).await;
    assert_eq!(over(&env, id).await.outcome, "ok");
    assert!(env.work.join("made").exists());
}

#[tokio::test]
async fn skills_and_agents_are_looked_up_at_each_run() {
    let env = TestEnv::new();
    env.agent("gone", "description: x");
    let _daemon = env.daemon().await;
    let skill = CreateCronMsg {
        skill: "review".into(),
        args: Some("the branches".into()),
        content: None,
        ..yearly("")
    };
    let entry = create(&env, skill.clone()).await;
    let says = "unknown skill \"review\"";
    assert!(entry.would_fail.contains(says), "{entry:?}");
    let id = entry.id;
    let run = fired(&env, id).await;
    assert_eq!((run.outcome.as_str(), run.code), ("failed", 404), "{run:?}");
    assert!(run.reason.contains(says), "{run:?}");
    let line = ["cron", "add", "@yearly", "review"];
    let said = env.run(&line).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("its runs will fail: "), "{said:?}");
    assert!(said.stderr.contains(says), "{said:?}");
    env.write(
        ".crabtalk/config/skills/review/SKILL.md",
        "---\nname: review\ndescription: Reviews.\n---\nReview $ARGUMENTS well.\n",
    );
    let said = env.run(&line).await;
    assert!(!said.stderr.contains("will fail"), "{said:?}");
    assert_eq!(create(&env, skill).await.would_fail, "");
    let run = fired(&env, id).await;
    assert_eq!(run.outcome, "ok", "{run:?}");
    let history = entries(&env, "crab", "cron").await;
    assert!(
        history[0].content.contains("Review the branches well"),
        "{history:?}"
    );

    let of_gone = CreateCronMsg {
        agent: "gone".into(),
        ..yearly("hello")
    };
    let id = create(&env, of_gone).await.id;
    fs::remove_file(env.home.join("config/agents/gone.md")).unwrap();
    reload(&env).await;
    let run = fired(&env, id).await;
    assert_eq!((run.outcome.as_str(), run.code), ("failed", 404), "{run:?}");
    let info = listed(&env).await.pop().unwrap();
    assert_eq!((info.last_outcome.as_str(), info.failures), ("failed", 1));
    assert!(info.last_error.contains("gone"), "{info:?}");
}

#[tokio::test]
async fn run_ended_by_a_kill_is_interrupted() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let id = create(&env, yearly("/slow 60000 a b c")).await.id;
    fire(&env, id).await;
    // The next daemon restarts a run whose message is not yet in the log.
    eventually("the run to begin", async || {
        let log = env.logs().pop()?;
        let text = fs::read_to_string(log).ok()?;
        text.contains("/slow 60000").then_some(())
    })
    .await;
    assert_eq!(rows(&env, id).await[0].outcome, "running");
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let run = over(&env, id).await;
    assert_eq!(run.outcome, "interrupted", "{run:?}");
    // The entry is updated shortly after.
    eventually("the end of the run", async || {
        let info = listed(&env).await.remove(0);
        (info.last_outcome == "interrupted" && info.fired == 1).then_some(())
    })
    .await;
    assert_eq!(rows(&env, id).await.len(), 1);
}

/// The next daemon resumes a run that a crash interrupted.
#[tokio::test]
async fn resumed_run_ends_in_the_books() {
    let half = openai::pieces(&["half a word"]).stall_after(2);
    let model = ModelServer::start(Script::openai([half, openai::text("All of it.")])).await;
    let env = TestEnv::with_model(&model);
    let config = fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{config}\n[runs]\nresume = \"auto\"\n"));
    let daemon = env.daemon().await;
    let id = create(&env, yearly("say it")).await.id;
    fire(&env, id).await;
    // The run has started and would not end.
    eventually("the run to ask its model", async || {
        (!model.requests().await.is_empty()).then_some(())
    })
    .await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let run = eventually("the books to know", async || {
        rows(&env, id).await.pop().filter(|run| run.outcome == "ok")
    })
    .await;
    assert!(run.run > 0, "{run:?}");
    let info = listed(&env).await.remove(0);
    assert_eq!((info.fired, info.failures), (1, 0), "{info:?}");
    assert_eq!(rows(&env, id).await.len(), 1);
    assert_eq!(model.requests().await.len(), 2);
}
