//! Repositories from anybody: what they are set up to run does not run when a
//! rule allows git.

use super::call;
use crate::rig::{TestEnv, has_tools};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Runs git for the test itself.
fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(status.status.success(), "{args:?}: {status:?}");
}

/// A repository in the work folder, with one commit and one change.
fn repository(env: &TestEnv) {
    git(&env.work, &["init", "-q"]);
    fs::write(env.work.join("f"), "a\n").unwrap();
    git(&env.work, &["add", "f"]);
    git(&env.work, &["commit", "-qm", "first"]);
    fs::write(env.work.join("f"), "b\n").unwrap();
    env.write(".gitconfig", "[user]\nname = a\nemail = a@b.c\n");
}

/// A program that leaves the file `CANARY`.
fn canary(env: &TestEnv, path: &str) {
    let path = env.work.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("#!/bin/sh\ntouch '{}/CANARY'\ncat\n", env.work.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn has_run(env: &TestEnv) -> bool {
    env.work.join("CANARY").exists()
}

#[tokio::test]
async fn hooks_monitors_and_pagers_of_a_repository_stay_off() {
    if !has_tools(
        "hooks_monitors_and_pagers_of_a_repository_stay_off",
        &["git", "bash"],
    ) {
        return;
    }
    let env = TestEnv::new();
    env.agent(
        "crab",
        "permissions: { bash: deny, \"bash(git status*)\": allow, \"bash(git commit*)\": allow, \
         \"bash(git log*)\": allow }",
    );
    repository(&env);
    for hook in [
        "pre-commit",
        "post-commit",
        "post-index-change",
        "commit-msg",
    ] {
        canary(&env, &format!(".git/hooks/{hook}"));
    }
    canary(&env, "evil");
    let evil = env.work.join("evil").display().to_string();
    git(&env.work, &["config", "core.fsmonitor", &evil]);
    git(&env.work, &["config", "core.pager", &evil]);
    // They would run.
    git(&env.work, &["status"]);
    assert!(has_run(&env));
    fs::remove_file(env.work.join("CANARY")).unwrap();

    let _daemon = env.daemon().await;
    let status = call(&env, "bash", json!({"command": "git  status   --short"})).await;
    assert!(
        !status.is_error && status.output.contains(" M f"),
        "{status:?}"
    );
    assert!(
        status.output.starts_with("[ran: git status --short]\n"),
        "{status:?}"
    );
    let commit = call(
        &env,
        "bash",
        json!({"command": "git commit -qam second && git log -p"}),
    )
    .await;
    assert!(
        !commit.is_error && commit.output.contains("+b"),
        "{commit:?}"
    );
    assert!(!has_run(&env));
    let log = fs::read_to_string(env.home.join("logs/daemon.log")).unwrap();
    assert!(
        log.contains("git log --no-ext-diff --no-textconv -p"),
        "{log}"
    );
}

#[tokio::test]
async fn a_repository_that_names_programs_is_asked_about() {
    if !has_tools(
        "a_repository_that_names_programs_is_asked_about",
        &["git", "bash"],
    ) {
        return;
    }
    let env = TestEnv::new();
    env.agent(
        "crab",
        "permissions: { bash: deny, \"bash(git *)\": allow, \"bash(cd *)\": allow }",
    );
    repository(&env);
    canary(&env, "evil");
    fs::write(
        env.work.join(".gitattributes"),
        "* filter=x diff=x merge=x\n",
    )
    .unwrap();
    let config = env.work.join(".git/config");
    let plain = fs::read_to_string(&config).unwrap();
    let _daemon = env.daemon().await;
    for (key, value) in [
        ("filter.x.clean", "./evil"),
        ("filter.x.process", "./evil"),
        ("diff.x.textconv", "./evil"),
        ("diff.x.command", "./evil"),
        ("diff.external", "./evil"),
        ("merge.x.driver", "./evil"),
        ("core.sshCommand", "./evil"),
        ("core.worktree", "/"),
        ("credential.helper", "./evil"),
        ("gpg.program", "./evil"),
        ("include.path", "../evil.config"),
        ("remote.origin.url", "ext::./evil"),
        ("remote.origin.uploadpack", "./evil"),
    ] {
        git(&env.work, &["config", key, value]);
        for command in ["git status", "git diff", "git log -p", "cd sub; git status"] {
            fs::create_dir_all(env.work.join("sub")).unwrap();
            let result = call(&env, "bash", json!({"command": command})).await;
            assert!(
                result.is_error && result.output.contains("denied"),
                "{key} {command}: {result:?}"
            );
        }
        fs::write(&config, &plain).unwrap();
    }
    // Another repository within, as a link or as plain files.
    fs::create_dir(env.work.join("inner")).unwrap();
    git(&env.work.join("inner"), &["init", "-q"]);
    git(
        &env.work.join("inner"),
        &["commit", "-qm", "x", "--allow-empty"],
    );
    git(&env.work, &["add", "inner"]);
    assert!(
        !call(&env, "bash", json!({"command": "git status"}))
            .await
            .is_error
    );
    git(
        &env.work.join("inner"),
        &["config", "filter.x.clean", "./evil"],
    );
    assert!(
        call(&env, "bash", json!({"command": "git status"}))
            .await
            .is_error
    );
    assert!(!has_run(&env));
}
