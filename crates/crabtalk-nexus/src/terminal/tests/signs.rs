//! Viewers of a window, and missing requirements.

use super::rig::{Rig, tmux};
use crate::backend::What;
use std::process::{Command, Stdio};

#[tokio::test]
async fn viewed_window_gets_no_message() {
    let Some(rig) = Rig::open("check_11").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["select-window", "-t", "nexus:FE"]);
    // A person's client inside a terminal of another server.
    let inner = format!(
        "tmux -S '{}' attach -t nexus",
        rig.folder.path().join("tmux").display()
    );
    let outer = rig.folder.path().join("outer");
    std::fs::create_dir(&outer).unwrap();
    tmux(
        &outer,
        &[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            &inner,
        ],
    );
    agent
        .until("Held", |what| {
            matches!(what, What::Held { held: true }).then_some(())
        })
        .await;
    let refused = agent.submit("x", "not while it is viewed").await;
    assert!(matches!(refused, crate::backend::Submitted::NotNow(_)));
    tmux(&outer, &["kill-server"]);
    agent
        .until("Held", |what| {
            matches!(what, What::Held { held: false }).then_some(())
        })
        .await;
    agent.say("now").await;
}

#[tokio::test]
async fn missing_tmux_is_a_clear_error() {
    // This program again, in an environment without tmux.
    if std::env::var_os("CRABTALK_NO_TMUX").is_some() {
        let folder = tempfile::tempdir().unwrap();
        let error = crate::terminal::Terminals::open(super::rig::settings(folder.path()))
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("need tmux") && text.contains("install it"),
            "{text}"
        );
        assert!(matches!(error, crate::backend::Failure::Missing(_)));
        return;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "terminal::tests::signs::missing_tmux_is_a_clear_error",
            "--exact",
        ])
        .env("CRABTALK_NO_TMUX", "1")
        .env("PATH", "/nonexistent")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}
