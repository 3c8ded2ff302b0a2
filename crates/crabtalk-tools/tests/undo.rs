//! What runs changed among files is shown and put back, or refused by name.
#![cfg(test)]

mod support;

use crabtalk_testkit::tools::has_tools;
use crabtalk_tools::{OsTools, UndoRefused, Undone};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{World, run};

/// A world with a conversation whose runs are numbered.
struct Undoing {
    world: World,
    tools: OsTools,
}

impl Undoing {
    fn new() -> Self {
        let world = World::new();
        let tools = world.tools();
        Self { world, tools }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.world.cwd.join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    async fn call(&self, number: u64, name: &str, arguments: serde_json::Value) {
        let mut call = self.world.call(name, arguments);
        call.run = number;
        call.root.1 = number;
        let output = run(&self.tools, call).await;
        assert!(!output.is_error, "{}", output.content);
    }

    async fn write(&self, number: u64, path: &str, content: &str) {
        self.call(number, "write", json!({"path": path, "content": content}))
            .await;
    }

    async fn bash(&self, number: u64, command: &str) {
        self.call(number, "bash", json!({ "command": command }))
            .await;
    }

    async fn undo(&self, number: Option<u64>, partly: bool) -> Result<Undone, UndoRefused> {
        let key = &self.world.call("read", json!({})).root.0;
        self.tools.undo(key, number, true, partly).await
    }

    /// Takes back what can be nothing but taken back.
    async fn undone(&self, number: u64) {
        let undone = self.undo(Some(number), false).await.unwrap();
        assert!(undone.done && undone.changes.undone, "{undone:?}");
    }

    /// What keeps a run from being taken back, by file.
    async fn refused(&self, number: u64) -> Vec<(String, String)> {
        let undone = self.undo(Some(number), false).await.unwrap();
        assert!(!undone.done, "{undone:?}");
        let files = undone.changes.files.into_iter();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        files
            .filter(|file| !file.problem.is_empty())
            .map(|file| (name(file.path), file.problem))
            .collect()
    }

    fn git(&self, arguments: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(["-c", "init.defaultBranch=main", "-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(&self.world.cwd)
            .env("HOME", &self.world.user_home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    /// A repository with a commit, a stash, something staged and something not.
    fn repository(&self) {
        self.git(&["init", "-q"]);
        fs::write(self.at("tracked"), "one\ntwo\n").unwrap();
        fs::write(self.at("dirty"), "committed\n").unwrap();
        fs::write(self.at("gone"), "was here\n").unwrap();
        fs::write(self.at("tool"), "#!/bin/sh\n").unwrap();
        fs::write(self.at("picture"), [0, 159, 146, 150]).unwrap();
        symlink("tracked", self.at("link")).unwrap();
        fs::write(self.at(".gitignore"), "built/\n").unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "first"]);
        fs::write(self.at("tracked"), "stashed\n").unwrap();
        self.git(&["stash", "-q"]);
        fs::write(self.at("dirty"), "staged\n").unwrap();
        self.git(&["add", "dirty"]);
        fs::write(self.at("dirty"), "not staged\n").unwrap();
        fs::write(self.at("untracked"), "mine\n").unwrap();
        fs::create_dir(self.at("built")).unwrap();
        fs::write(self.at("built/out"), "built\n").unwrap();
    }

    /// All files of the repository, with what is in them.
    fn repository_is(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        walk(&self.at(".git"), &mut files);
        files.sort();
        files
    }
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, files),
            false => files.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
}

#[tokio::test]
async fn files_that_tools_changed_are_as_they_were() {
    let it = Undoing::new();
    fs::write(it.at("old"), "before\n").unwrap();
    fs::set_permissions(it.at("old"), fs::Permissions::from_mode(0o640)).unwrap();
    let outside = it.world.root.join("outside");
    it.call(
        1,
        "edit",
        json!({"path": "old", "old_string": "before", "new_string": "after"}),
    )
    .await;
    it.write(1, "old", "later\n").await;
    it.write(1, "new/deep/file", "made\n").await;
    it.write(1, outside.to_str().unwrap(), "far\n").await;
    let key = it.world.call("read", json!({})).root.0;
    let listed = it.tools.changes(&key, None, 10, true).await.unwrap();
    assert_eq!(listed.len(), 1);
    let old = listed[0].files.iter().find(|f| f.path == it.at("old"));
    let diff = &old.unwrap().diff;
    assert!(
        diff.contains("-before") && diff.contains("+later"),
        "{diff}"
    );
    assert!(!diff.contains("\n+after\n"), "from first to last: {diff}");

    it.undone(1).await;
    assert_eq!(it.text("old"), "before\n");
    let mode = it.at("old").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!it.at("new").exists(), "the folders went with the file");
    assert!(!outside.exists());
    assert_eq!(
        it.undo(None, false).await.unwrap_err(),
        UndoRefused::Nothing
    );
    assert_eq!(
        it.undo(Some(1), false).await.unwrap_err(),
        UndoRefused::NoRun(1)
    );
}

#[tokio::test]
async fn a_file_that_changed_since_is_named_and_nothing_is_done() {
    let it = Undoing::new();
    fs::write(it.at("a"), "a\n").unwrap();
    fs::write(it.at("b"), "b\n").unwrap();
    it.write(1, "a", "A\n").await;
    it.write(1, "b", "B\n").await;
    it.write(1, "c", "C\n").await;
    fs::write(it.at("b"), "mine\n").unwrap();
    fs::remove_file(it.at("c")).unwrap();
    let refused = it.refused(1).await;
    assert_eq!(refused, [("b".into(), "it was changed since".into())]);
    assert_eq!(it.text("a"), "A\n", "nothing was done");

    let undone = it.undo(Some(1), true).await.unwrap();
    assert!(undone.done && !undone.changes.undone);
    assert_eq!(
        (it.text("a"), it.text("b")),
        ("a\n".into(), "mine\n".into())
    );
    // What stayed is still known, and can be taken back once it fits.
    fs::write(it.at("b"), "B\n").unwrap();
    it.undone(1).await;
    assert_eq!(it.text("b"), "b\n");
}

#[tokio::test]
async fn a_dry_run_touches_nothing() {
    let it = Undoing::new();
    it.write(1, "a", "A\n").await;
    let key = it.world.call("read", json!({})).root.0;
    let would = it.tools.undo(&key, None, false, false).await.unwrap();
    assert!(!would.done);
    assert_eq!(would.changes.files.len(), 1);
    assert_eq!(it.text("a"), "A\n");
    it.undone(1).await;
}

#[tokio::test]
async fn runs_that_alternate_are_taken_back_in_their_order() {
    let it = Undoing::new();
    fs::write(it.at("a"), "0").unwrap();
    it.write(1, "a", "1").await;
    it.write(2, "a", "2").await;
    assert_eq!(it.refused(1).await.len(), 1, "run 2 changed it since");
    it.undone(2).await;
    it.undone(1).await;
    assert_eq!(it.text("a"), "0");

    it.write(3, "a", "3").await;
    it.write(4, "a", "4").await;
    it.write(3, "a", "5").await;
    let refused = it.refused(3).await;
    assert!(refused[0].1.contains("between two changes"), "{refused:?}");
}

#[tokio::test]
async fn nothing_is_put_back_through_a_link() {
    let it = Undoing::new();
    fs::create_dir(it.at("folder")).unwrap();
    fs::write(it.at("folder/a"), "before").unwrap();
    it.write(1, "folder/a", "after").await;
    let elsewhere = it.world.root.join("elsewhere");
    fs::rename(it.at("folder"), &elsewhere).unwrap();
    symlink(&elsewhere, it.at("folder")).unwrap();
    let refused = it.refused(1).await;
    assert!(refused[0].1.contains("link"), "{refused:?}");
    assert_eq!(fs::read_to_string(elsewhere.join("a")).unwrap(), "after");
}

#[tokio::test]
async fn repeated_undo_finishes_one_that_was_killed() {
    let it = Undoing::new();
    fs::write(it.at("a"), "a").unwrap();
    fs::write(it.at("b"), "b").unwrap();
    it.write(1, "a", "A").await;
    it.write(1, "b", "B").await;
    // One file was put back already. Names of unfinished files begin with 16
    // digits of the SHA-256 of the file's name: here of `a` and `b`.
    fs::write(it.at("a"), "a").unwrap();
    for left in ["ca978112ca1bbdca", "3e23e8160039594a"] {
        let left = format!(".crabtalk-{left}-0123456789abcdef");
        fs::write(it.at(&left), "hal").unwrap();
    }
    it.undone(1).await;
    assert_eq!((it.text("a"), it.text("b")), ("a".into(), "b".into()));
    assert_eq!(fs::read_dir(&it.world.cwd).unwrap().count(), 2);
}

#[tokio::test]
async fn changes_of_a_removed_conversation_are_forgotten() {
    let it = Undoing::new();
    it.write(1, "a", "A").await;
    it.write(2, "b", "B").await;
    // Removing a conversation moves its folder away.
    fs::remove_dir_all(it.world.home.join("state/changes")).unwrap();
    assert_eq!(
        it.undo(Some(1), false).await.unwrap_err(),
        UndoRefused::NoRun(1)
    );
    it.write(2, "c", "C").await;
    it.undone(2).await;
    assert!(it.at("b").exists() && !it.at("c").exists());
}

#[tokio::test]
async fn undo_reverts_command_changes_in_a_repository() {
    let name = "undo_reverts_command_changes_in_a_repository";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    let repository = it.repository_is();
    it.bash(
        1,
        "echo three >> tracked; echo more >> dirty; rm gone untracked; chmod +x tool
         printf '\\0\\1' > picture; ln -sf dirty link; mkdir -p new/deep; echo new > new/deep/file
         echo again > built/out",
    )
    .await;
    let key = it.world.call("read", json!({})).root.0;
    let listed = it.tools.changes(&key, Some(1), 10, true).await.unwrap();
    let kinds: Vec<String> = listed[0]
        .files
        .iter()
        .map(|file| {
            let path = file.path.strip_prefix(&it.world.cwd).unwrap();
            format!("{} {}", file.kind.as_str(), path.display())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "changed dirty",
            "removed gone",
            "changed link",
            "created new/deep/file",
            "changed picture",
            "changed tool",
            "changed tracked",
            "removed untracked",
        ]
    );
    assert_eq!(it.repository_is(), repository, "looking changed nothing");

    it.undone(1).await;
    assert_eq!(it.text("tracked"), "one\ntwo\n");
    assert_eq!(it.text("dirty"), "not staged\n");
    assert_eq!(it.text("gone"), "was here\n");
    assert_eq!(it.text("untracked"), "mine\n");
    assert_eq!(fs::read(it.at("picture")).unwrap(), [0, 159, 146, 150]);
    assert_eq!(fs::read_link(it.at("link")).unwrap(), Path::new("tracked"));
    let mode = it.at("tool").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}");
    assert!(!it.at("new").exists());
    assert_eq!(it.text("built/out"), "again\n", "what git ignores stays");
    assert_eq!(it.repository_is(), repository, "neither did putting back");
}

#[tokio::test]
async fn a_commit_of_the_run_stays_and_its_files_are_as_they_were() {
    let name = "a_commit_of_the_run_stays_and_its_files_are_as_they_were";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    it.bash(
        1,
        "echo three >> tracked && git add -A && git -c user.name=a -c user.email=b commit -qm second",
    )
    .await;
    let committed = it.repository_is();
    it.undone(1).await;
    assert_eq!(it.text("tracked"), "one\ntwo\n");
    assert_eq!(it.repository_is(), committed);
}

#[tokio::test]
async fn no_program_that_a_repository_names_is_run_by_looking() {
    let name = "no_program_that_a_repository_names_is_run_by_looking";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    let ran = it.world.root.join("ran");
    let program = format!("touch {}; cat", ran.display());
    for key in ["filter.x.clean", "filter.x.smudge", "core.fsmonitor"] {
        it.git(&["config", key, &program]);
    }
    fs::write(it.at(".gitattributes"), "* filter=x text eol=crlf\n").unwrap();
    it.bash(1, "echo three >> tracked").await;
    it.undone(1).await;
    assert!(!ran.exists());
    assert_eq!(it.text("tracked"), "one\ntwo\n");
}

#[tokio::test]
async fn a_file_that_was_ignored_is_not_taken_for_a_new_one() {
    let name = "a_file_that_was_ignored_is_not_taken_for_a_new_one";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    // Older than the look by more than clocks are apart.
    let made = it.at("built/out").metadata().unwrap().modified().unwrap();
    while made.elapsed().unwrap_or_default() < std::time::Duration::from_millis(60) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    it.bash(1, "echo > .gitignore").await;
    let undone = it.undo(Some(1), true).await.unwrap();
    assert!(undone.done);
    assert_eq!(it.text("built/out"), "built\n");
    assert_eq!(it.text(".gitignore"), "built/\n");
}

#[tokio::test]
async fn undo_skips_changes_two_runs_may_share() {
    let name = "undo_skips_changes_two_runs_may_share";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    let _go = it.world.fifo("go");
    // Each waits for the other, so that they overlap.
    tokio::join!(
        it.bash(1, "echo go > go; echo three >> tracked"),
        it.bash(2, "cat go > /dev/null"),
    );
    let refused = it.refused(1).await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].1.contains("another run"), "{refused:?}");
}

#[tokio::test]
async fn undo_keeps_writes_of_other_runs() {
    let name = "undo_keeps_writes_of_other_runs";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    let _go = it.world.fifo("go");
    let other = async {
        // The command runs once it reads.
        let at = it.at("go");
        let opened = tokio::task::spawn_blocking(move || fs::File::options().write(true).open(at));
        let opened = opened.await.unwrap().unwrap();
        it.write(2, "untracked", "of run 2\n").await;
        drop(opened);
    };
    tokio::join!(
        it.bash(1, "cat go > /dev/null; echo three >> tracked"),
        other
    );
    it.undone(1).await;
    assert_eq!(it.text("tracked"), "one\ntwo\n");
    assert_eq!(it.text("untracked"), "of run 2\n");
    it.undone(2).await;
    assert_eq!(it.text("untracked"), "mine\n");
}

#[tokio::test]
async fn a_command_that_is_cancelled_is_looked_at_all_the_same() {
    let name = "a_command_that_is_cancelled_is_looked_at_all_the_same";
    if !has_tools(name, &["git"]) {
        return;
    }
    let it = Undoing::new();
    it.repository();
    let _go = it.world.fifo("go");
    let at = it.at("go");
    let reached = tokio::task::spawn_blocking(move || fs::read(at));
    tokio::select! {
        () = it.bash(1, "echo three >> tracked; echo go > go; sleep 600") => panic!("it sleeps"),
        read = reached => { read.unwrap().unwrap(); }
    }
    it.tools.shut_down().await;
    let tools = it.world.tools();
    let key = it.world.call("read", json!({})).root.0;
    let undone = tools.undo(&key, Some(1), true, false).await.unwrap();
    assert!(undone.changes.undone, "{undone:?}");
    assert_eq!(it.text("tracked"), "one\ntwo\n");
}
