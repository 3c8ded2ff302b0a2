//! A home written to a file while its daemon runs, and put back.

use crate::rig::TestEnv;
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
