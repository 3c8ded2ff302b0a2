//! Unusable folders and books.

use super::{create, fired, rows, yearly};
use crate::rig::TestEnv;
use crabtalk_proto::{Client, CreateCronMsg, RunCronMsg};
use std::fs;

#[tokio::test]
async fn unwritable_cron_journal_stops_only_firing() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let id = create(&env, yearly("hello")).await.id;
    assert_eq!(fired(&env, id).await.outcome, "ok");
    daemon.terminate().await;
    // A folder is at the database's path.
    let (records, kept) = (
        env.home.join("state/records.db"),
        env.home.join("state/kept"),
    );
    fs::rename(&records, &kept).unwrap();
    fs::create_dir(&records).unwrap();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let request = RunCronMsg { id };
    let refused = connection.run_cron(request).await.unwrap_err();
    assert!(refused.to_string().contains("records.db"), "{refused}");
    // Everything else works.
    let asked = env.run(&["ask", "hello", "--no-stdin"]).await.ok();
    assert!(asked.contains("hello"), "{asked}");
    daemon.terminate().await;
    // The repaired books have the earlier runs.
    fs::remove_dir(&records).unwrap();
    fs::rename(&kept, &records).unwrap();
    let _daemon = env.daemon().await;
    assert_eq!(fired(&env, id).await.outcome, "ok");
    assert_eq!(rows(&env, id).await.len(), 2);
}

#[tokio::test]
async fn removed_folder_is_a_failed_run() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let place = env.work.join("soon-gone");
    fs::create_dir(&place).unwrap();
    let entry = CreateCronMsg {
        cwd: Some(place.display().to_string()),
        ..yearly("x")
    };
    let id = create(&env, entry).await.id;
    fs::remove_dir(&place).unwrap();
    let run = fired(&env, id).await;
    assert_eq!(run.outcome, "failed", "{run:?}");
    assert!(run.reason.contains("soon-gone"), "{run:?}");
}
