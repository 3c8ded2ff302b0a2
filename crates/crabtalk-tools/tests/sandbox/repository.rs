//! A repository in the sandbox: work goes on, and its configuration stays.

use crate::support::World;
use crabtalk_testkit::tools::{has_tools, skip};
use crabtalk_tools::OsTools;
use std::path::Path;
use std::process::Command;

/// A world whose folder is a repository with one commit; `None` where git or
/// the walls are missing.
async fn repository(test: &str) -> Option<(World, OsTools)> {
    let world = World::new();
    if !has_tools(test, &["git"]) {
        return None;
    }
    let tools = world.tools();
    if !tools.walls().await.are_complete() {
        skip(test, "the machine allows no namespaces");
        return None;
    }
    std::fs::write(world.cwd.join("file"), "one\n").unwrap();
    git(&world.cwd, "init -q -b main");
    git(&world.cwd, "config user.name n");
    git(&world.cwd, "config user.email e@example.com");
    git(&world.cwd, "add .");
    git(&world.cwd, "commit -q -m first");
    Some((world, tools))
}

pub(crate) fn git(folder: &Path, arguments: &str) {
    let status = Command::new("git")
        .args(arguments.split(' '))
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", "/nonexistent")
        .status();
    assert!(status.unwrap().success(), "{arguments}");
}

#[tokio::test]
async fn everyday_git_works_without_a_question() {
    let Some((world, tools)) = repository("everyday_git_works_without_a_question").await else {
        return;
    };
    let command = "set -e; echo two >> file; git stash -q; git stash pop -q; git add file; git commit -qm second; \
        git checkout -qb side; git switch -q main; git status --porcelain; git merge -q side; \
        git branch -D side >/dev/null 2>&1 || true; git gc -q; git log --format=%s";
    let output = world.bash(&tools, command).await;
    assert_eq!(output.content, "second\nfirst\n");
    git(&world.cwd, "fsck --no-dangling");
}

#[tokio::test]
async fn configuration_and_hooks_stay_as_they_are() {
    let Some((world, tools)) = repository("configuration_and_hooks_stay_as_they_are").await else {
        return;
    };
    let git_folder = world.cwd.join(".git");
    std::fs::create_dir_all(world.cwd.join("conf")).unwrap();
    std::fs::write(world.cwd.join("conf/inc"), "[user]\n").unwrap();
    git(&world.cwd, "config include.path ../conf/inc");
    git(&world.cwd, "config --add include.path ../later");
    std::fs::remove_dir_all(git_folder.join("info")).unwrap();
    let before = std::fs::read(git_folder.join("config")).unwrap();
    let attempts = [
        "git config core.pager evil",
        "echo evil > .git/config",
        "rm -f .git/config",
        "mv .git/config .git/c",
        "ln -f file .git/config",
        "mv .git .g && mkdir .git",
        "touch .git/hooks/pre-commit",
        "mv .git/hooks .git/h",
        "chmod 777 .git/config",
        "echo evil > conf/inc",
        "mv conf c && mkdir conf",
        "echo evil > later",
        "echo /x > .git/commondir",
        "echo x > .git/config.worktree",
        "mkdir .git/modules .git/info && echo x > .git/info/attributes",
        "ln -s /etc .git/commondir",
    ];
    for attempt in attempts {
        world.bash(&tools, attempt).await;
        assert_eq!(
            std::fs::read(git_folder.join("config")).unwrap(),
            before,
            "{attempt}"
        );
        assert_eq!(
            std::fs::read(world.cwd.join("conf/inc")).unwrap(),
            b"[user]\n",
            "{attempt}"
        );
        assert!(!git_folder.join("hooks/pre-commit").exists(), "{attempt}");
        let created = [
            ".git/commondir",
            ".git/config.worktree",
            ".git/modules",
            ".git/info",
            "later",
            ".g",
        ];
        for created in created {
            assert!(
                world.cwd.join(created).symlink_metadata().is_err(),
                "{attempt}: {created}"
            );
        }
    }
    // They cannot even be made, which git outside would obey at once.
    let make = "for f in commondir config.worktree info/x modules/x; do (echo x > .git/$f) 2>/dev/null && echo made; done; true";
    assert_eq!(world.bash(&tools, make).await.content, "[no output]");
    let names = std::fs::read_dir(&git_folder).unwrap();
    let left = names.filter(|e| {
        e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("removed")
    });
    assert_eq!(left.count(), 0);
    assert_eq!(
        world.bash(&tools, "git status --porcelain").await.content,
        "?? conf/\n"
    );
}

#[tokio::test]
async fn linked_work_tree_works_and_foreign_git_file_is_closed() {
    let test = "linked_work_tree_works_and_foreign_git_file_is_closed";
    let Some((mut world, tools)) = repository(test).await else {
        return;
    };
    let main = world.cwd.clone();
    git(&main, "worktree add -q ../linked");
    world.cwd = main.parent().unwrap().join("linked");
    let command = format!(
        "set -e; echo two >> file; git add file; git commit -qm linked; git log -1 --format=%s; \
         echo evil > {0}/.git/config || true; echo / > {0}/.git/worktrees/linked/commondir || true; \
         echo gitdir: evil > .git || true; cat {0}/file || true",
        main.display()
    );
    let output = world.bash(&tools, &command).await;
    assert!(output.content.starts_with("linked\n"), "{output:?}");
    git(&world.cwd, "status -s");
    assert!(
        !std::fs::read_to_string(main.join(".git/config"))
            .unwrap()
            .contains("evil")
    );

    let foreign = main.parent().unwrap().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    let named = format!("gitdir: {}\n", main.join(".git").display());
    std::fs::write(foreign.join(".git"), named).unwrap();
    world.cwd = foreign;
    let command = format!("ls {0}/.git; touch {0}/.git/x", main.display());
    let output = world.bash(&tools, &command).await;
    assert!(
        output.is_error && !output.content.contains("HEAD\n"),
        "{output:?}"
    );
    assert!(!main.join(".git/x").exists());
}
