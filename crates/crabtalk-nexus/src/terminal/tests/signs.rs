//! Bells, and who looks.

use super::rig::{Rig, tmux};
use crate::backend::What;
use std::process::{Command, Stdio};

fn bells(what: &What) -> Option<u64> {
    match what {
        What::Bell { count, .. } => Some(*count),
        _ => None,
    }
}

#[tokio::test]
async fn bell_in_a_viewed_window_is_reported() {
    let Some(rig) = Rig::open("check_11").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    rig.tmux(&["select-window", "-t", "nexus:FE"]);
    // A person's client, within a terminal of another server.
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
    rig.tmux(&["send-keys", "-t", "nexus:FE", "-l", "[say:hello]"]);
    rig.tmux(&["send-keys", "-t", "nexus:FE", "Enter"]);
    agent.until("Bell", bells).await;
    tmux(&outer, &["kill-server"]);
    agent
        .until("Held", |what| {
            matches!(what, What::Held { held: false }).then_some(())
        })
        .await;
    agent.say("now").await;
}

#[tokio::test]
async fn three_bells_are_counted() {
    let Some(rig) = Rig::open("check_12").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[bells:3]").await;
    let mut heard = 0;
    while heard < 3 {
        heard += agent.until("Bell", bells).await;
    }
    assert_eq!(heard, 3);
}

#[tokio::test]
async fn bell_that_ends_a_title_is_ignored() {
    let Some(rig) = Rig::open("check_13").await else {
        return;
    };
    let mut agent = rig.ready("FE").await;
    agent.say("[title]").await;
    assert_eq!(agent.ended().await.output, "titled");
    agent.say("[say:and a real one]").await;
    assert_eq!(agent.until("Bell", bells).await, 1);
}

#[tokio::test]
async fn hooks_of_the_user_are_kept() {
    let Some(rig) = Rig::open("hooks_of_the_user_stay").await else {
        return;
    };
    rig.tmux(&["set-hook", "-g", "alert-bell[0]", "display-message user"]);
    let hooks = || rig.tmux(&["show-hooks", "-g", "alert-bell"]);
    assert!(hooks().contains("alert-bell[77]"), "{}", hooks());
    rig.terminals.server.tmux.unset_hooks().await.unwrap();
    assert!(
        hooks().contains("alert-bell[0] display-message"),
        "{}",
        hooks()
    );
    assert!(!hooks().contains("[77]"), "{}", hooks());
}

#[tokio::test]
async fn missing_tmux_is_a_clear_error() {
    // This very program again, where no tmux is found.
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
        let failure = crate::backend::Failure::from(error);
        assert!(matches!(failure, crate::backend::Failure::Missing(_)));
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
