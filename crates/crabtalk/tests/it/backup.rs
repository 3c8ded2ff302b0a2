//! A home is backed up while its daemon runs, and restored.

use crate::rig::{TestEnv, eventually};
use crabtalk_proto::{Client, GetHistoryMsg, GetStats, ListCronRunsMsg};
use std::fs;

#[tokio::test]
async fn backup_of_a_running_home_is_restored_without_revoked_rights() {
    let env = TestEnv::new();
    let approval = |file: &str| {
        format!(
            "[[approval]]\nagent = \"crab\"\nsender = \"me\"\ntool = \"edit\"\nexact = \"{file}\"\ncwd = \"/work\"\nat = \"\"\nby = \"\"\n"
        )
    };
    let approvals = [approval("/work/a"), approval("/work/b")];
    env.write(".crabtalk/config/approvals.toml", &approvals.concat());
    let daemon = env.daemon().await;
    env.run(&["ask", "before the backup"]).await.ok();
    for name in ["kept", "gone"] {
        env.run(&["tokens", "add", name, "--role", "talk"])
            .await
            .ok();
    }
    let file = env.work.join("home.tar");
    let file = file.to_str().unwrap();
    let said = env.run(&["backup", file]).await.ok();
    assert!(said.contains("keep it private"), "{said}");
    let again = env.run(&["backup", file]).await.fails(1);
    assert!(again.contains("move an older backup away"), "{again}");

    env.run(&["ask", "after the backup"]).await.ok();
    env.run(&["tokens", "rm", "gone"]).await.ok();
    env.write(".crabtalk/config/approvals.toml", &approvals[0]);
    let running = env.run(&["restore", file]).await.fails(1);
    assert!(running.contains("stopped daemon"), "{running}");
    daemon.terminate().await;
    let said = env.run(&["restore", file]).await.ok();
    assert!(said.contains("stay removed: gone"), "{said}");
    assert!(said.contains("1 approvals"), "{said}");
    let kept = env.home.with_file_name(".crabtalk.before-restore-1");
    assert!(kept.join("sessions").is_dir());

    let _daemon = env.daemon().await;
    let history = env.run(&["history"]).await.ok();
    assert!(history.contains("before the backup"), "{history}");
    assert!(!history.contains("after the backup"), "{history}");
    let tokens = env.run(&["tokens"]).await.ok();
    assert!(
        tokens.contains("kept") && !tokens.contains("gone"),
        "{tokens}"
    );
    let approvals = env.run(&["approvals"]).await.ok();
    assert!(approvals.contains("/work/a"), "{approvals}");
    assert!(!approvals.contains("/work/b"), "{approvals}");
}

#[tokio::test]
async fn restore_refuses_files_that_are_not_backups() {
    let env = TestEnv::new();
    let file = env.work.join("notes.txt");
    fs::write(&file, "not a backup").unwrap();
    let refused = env.run(&["restore", file.to_str().unwrap()]).await;
    refused.fails(1);
    assert!(!env.sessions().exists());
}

#[tokio::test]
async fn restored_records_are_complete_and_fire_nothing_missed() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    for words in [
        &["ask", "before the backup"][..],
        &["tokens", "add", "kept"],
        &["subscriptions", "add", "build:*"],
        &[
            "cron",
            "add",
            "59 23 31 12 *",
            "--missed",
            "once",
            "tidy up",
        ],
    ] {
        env.run(words).await.ok();
    }
    let tokens = async || {
        let stats = env.connect().await.get_stats(GetStats { days: 1 }).await;
        stats.unwrap().tokens_today
    };
    let used = tokens().await;
    assert!(used > 0);
    daemon.terminate().await;
    let db = rusqlite::Connection::open(env.home.join("state/records.db")).unwrap();
    let waiting = "INSERT INTO event VALUES (900, 'build:failed', 'missed', 1, '[1]', '')";
    assert_eq!(db.execute(waiting, []).unwrap(), 1);
    let missed =
        "UPDATE cron_entry SET account = json_set(account, '$.mark', '2020-01-01T00:00:00Z')";
    assert_eq!(db.execute(missed, []).unwrap(), 1);
    drop(db);
    env.write(".crabtalk/state/search/index.db", "derived");
    let file = env.work.join("home.tar");
    let file = file.to_str().unwrap();
    env.run(&["backup", file]).await.ok();
    env.run(&["restore", file]).await.ok();
    assert!(!env.home.join("state/search/index.db").exists());
    assert!(!env.home.join("state/index.db").exists());

    let _daemon = env.daemon().await;
    assert_eq!(tokens().await, used);
    let audit = env.run(&["audit"]).await.ok();
    assert!(audit.contains("token-created"), "{audit}");
    env.run(&["audit", "verify"]).await.ok();
    env.run(&["publish", "--no-stdin", "build:passed", "new"])
        .await
        .ok();
    let history = async |source: &str| {
        let request = GetHistoryMsg {
            sender: format!("event:{source}"),
            ..GetHistoryMsg::default()
        };
        let page = env.connect().await.get_history(request).await;
        page.map(|page| page.entries).unwrap_or_default()
    };
    eventually("the run of the new event", async || {
        (history("build:passed").await.len() >= 2).then_some(())
    })
    .await;
    assert_eq!(history("build:failed").await.len(), 0);
    let request = ListCronRunsMsg::default();
    let runs = env.connect().await.list_cron_runs(request).await;
    let runs = runs.unwrap().runs;
    assert!(runs.iter().all(|run| run.outcome == "skipped"), "{runs:?}");
}
