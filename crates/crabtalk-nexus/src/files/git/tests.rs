//! Commits in various repositories.

use super::*;
use crate::files::tests::{builder, team};
use std::fs;
use std::time::SystemTime;

/// Runs git like a user.
fn git(root: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Me", "-c", "user.email=me@localhost"]);
    let output = git.args(words).current_dir(root).output().unwrap();
    String::from_utf8(said_by(output).unwrap()).unwrap()
}

#[test]
fn checkpoint_commits_only_the_agents_paths() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let files = team(root);
    files.init().unwrap();
    std::fs::write(root.join("review/notes.md"), "of another").unwrap();
    git(root, &["add", "review/notes.md"]);
    let said = files
        .checkpoint(&builder(), "BUILDER: identity confirmed")
        .unwrap();
    assert!(said.what.starts_with("commit "), "{said:?}");
    let shown = git(root, &["show", "--name-only", "--format=%an %s", "HEAD"]);
    assert!(
        shown.starts_with("NEXUS BUILDER: identity confirmed"),
        "{shown}"
    );
    assert!(!shown.contains("review"), "{shown}");
    assert!(git(root, &["status", "--porcelain"]).contains("A  review/notes.md"));
    assert_eq!(
        files.checkpoint(&builder(), "x").unwrap().what,
        "nothing changed"
    );
}

/// Agents can write the repository's configuration, so programs named in it are not run.
#[test]
fn checkpoint_runs_no_program_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("team");
    let files = team(&root);
    files.init().unwrap();
    let ran = folder.path().join("ran");
    let program = format!("touch {}; cat", ran.display());
    for name in ["x", "y=z"] {
        for kind in ["clean", "smudge", "process"] {
            git(
                &root,
                &["config", &format!("filter.{name}.{kind}"), &program],
            );
        }
        git(
            &root,
            &["config", &format!("filter.{name}.required"), "true"],
        );
    }
    let attributes = "AGENT.md filter=x\ncontext.md filter=y=z\n";
    std::fs::write(root.join("builder/.gitattributes"), attributes).unwrap();
    let said = files.checkpoint(&builder(), "begin").unwrap();
    assert!(said.what.starts_with("commit "), "{said:?}");
    assert_eq!(files.verify(&builder(), SystemTime::UNIX_EPOCH), Ok(()));
    assert!(!ran.exists(), "a filter ran");
}

/// Removing the repository must not redirect commits to one in a folder above.
#[test]
fn removed_repository_is_not_replaced_by_an_outer_one() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    let root = folder.path().join("team");
    let files = team(&root);
    files.init().unwrap();
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    for refused in [
        files.checkpoint(&builder(), "begin").unwrap_err(),
        files
            .verify(&builder(), SystemTime::UNIX_EPOCH)
            .unwrap_err(),
    ] {
        assert!(refused.contains("not a git repository"), "{refused}");
    }
    let commits = git(folder.path(), &["rev-list", "--all", "--count"]);
    assert_eq!(commits.trim(), "0");
}

/// Neither must replacing it by a `gitdir` file or a link.
#[test]
fn replaced_repository_gets_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    git(&theirs, &["init", "--quiet"]);
    let root = folder.path().join("team");
    let files = team(&root);
    files.init().unwrap();
    files.checkpoint(&builder(), "begin").unwrap();
    let (at, kept) = (root.join(".git"), root.join("kept"));
    let file: fn(&Path, &Path) = |theirs, at| {
        std::fs::write(at, format!("gitdir: {}/.git\n", theirs.display())).unwrap();
    };
    let link: fn(&Path, &Path) = |theirs, at| {
        std::os::unix::fs::symlink(theirs.join(".git"), at).unwrap();
    };
    for lead in [file, link] {
        std::fs::rename(&at, &kept).unwrap();
        lead(&theirs, &at);
        let refused = files.checkpoint(&builder(), "begin").unwrap_err();
        assert!(refused.contains("theirs/.git now, and led to"), "{refused}");
        let commits = git(&theirs, &["rev-list", "--all", "--count"]);
        assert_eq!(commits.trim(), "0");
        assert!(!theirs.join(".git/index").exists(), "something was staged");
        std::fs::remove_file(&at).unwrap();
        std::fs::rename(&kept, &at).unwrap();
    }
}

/// A team with committed files.
fn begun(folder: &Path) -> (PathBuf, crate::files::Files) {
    let root = folder.join("team");
    let files = team(&root);
    files.init().unwrap();
    files.checkpoint(&builder(), "begin").unwrap();
    files.commit(&["review".into()], "begin").unwrap();
    (root, files)
}

fn dirty(root: &Path) -> String {
    git(root, &["status", "--porcelain", "--", "builder"])
}

/// A repository in an agent's folder also names programs.
#[test]
fn checkpoint_runs_no_program_of_a_nested_repository() {
    let folder = tempfile::tempdir().unwrap();
    let (root, files) = begun(folder.path());
    let within = root.join("builder/clone");
    git(&root, &["init", "--quiet", "builder/clone"]);
    fs::write(within.join("a"), "one").unwrap();
    fs::write(within.join(".gitattributes"), "* filter=x\n").unwrap();
    git(&within, &["add", "."]);
    git(&within, &["commit", "--quiet", "-m", "one"]);
    git(&root, &["add", "builder/clone"]);
    git(&root, &["commit", "--quiet", "-m", "a repository within"]);
    let ran = folder.path().join("ran");
    let program = format!("touch {}; cat", ran.display());
    git(&within, &["config", "filter.x.clean", &program]);
    git(&root, &["config", "submodule.x.path", "builder/clone"]);
    git(&root, &["config", "submodule.x.ignore", "none"]);
    git(&root, &["config", "submodule.recurse", "true"]);
    let modules = "[submodule \"x\"]\npath = builder/clone\nurl = ./x\nignore = none\n";
    fs::write(root.join(".gitmodules"), modules).unwrap();
    fs::write(within.join("a"), "two").unwrap();
    fs::write(root.join("builder/notes.md"), "new").unwrap();
    let said = files.checkpoint(&builder(), "notes").unwrap();
    assert!(said.what.starts_with("commit "), "{said:?}");
    assert_eq!(files.verify(&builder(), SystemTime::UNIX_EPOCH), Ok(()));
    assert!(!ran.exists(), "a filter of the repository within ran");

    // An untracked repository is not added.
    git(&root, &["init", "--quiet", "builder/other"]);
    fs::write(root.join("builder/more.md"), "new").unwrap();
    let said = files.checkpoint(&builder(), "more").unwrap();
    assert_eq!(said.left_out, [r#""builder/other/" (a nested repository)"#]);
    let tracked = git(&root, &["ls-files", "builder/more.md", "builder/other"]);
    assert_eq!(tracked, "builder/more.md\n");
}

/// git runs maintenance after a commit, with programs named by the repository.
#[test]
fn checkpoint_runs_no_maintenance() {
    let folder = tempfile::tempdir().unwrap();
    let (root, files) = begun(folder.path());
    for _ in 0..3 {
        git(&root, &["commit", "--quiet", "--allow-empty", "-m", "more"]);
        git(&root, &["repack", "--quiet"]);
    }
    let ran = folder.path().join("ran");
    for (key, value) in [
        (
            "gc.recentObjectsHook",
            format!("touch {}; cat", ran.display()),
        ),
        ("gc.autoPackLimit", "1".into()),
        ("gc.auto", "1".into()),
        ("gc.autoDetach", "false".into()),
        ("gc.pruneExpire", "now".into()),
        ("maintenance.auto", "true".into()),
        ("maintenance.autoDetach", "false".into()),
    ] {
        git(&root, &["config", key, &value]);
    }
    fs::write(root.join("builder/notes.md"), "new").unwrap();
    files.checkpoint(&builder(), "notes").unwrap();
    let packs = fs::read_dir(root.join(".git/objects/pack")).unwrap();
    let count = packs.filter(|of| {
        let path = of.as_ref().unwrap().path();
        path.extension().is_some_and(|end| end == "pack")
    });
    assert_eq!(count.count(), 3, "the packs were combined");
    assert!(!ran.exists(), "a program that the repository names ran");
}

/// `git add` marks a conflict as resolved, and a commit ends a merge or moves a
/// bisection.
#[test]
fn unfinished_operation_blocks_checkpoints() {
    type Begin = (&'static str, &'static [&'static str]);
    let begins: [Begin; 5] = [
        ("a merge", &["merge", "--quiet", "side"]),
        ("a rebase", &["rebase", "--quiet", "side"]),
        ("a cherry-pick", &["cherry-pick", "side"]),
        ("a revert", &["revert", "--no-edit", "side~1"]),
        ("a bisect", &["bisect", "start", "HEAD", "HEAD~1"]),
    ];
    for (what, begin) in begins {
        let folder = tempfile::tempdir().unwrap();
        let (root, files) = begun(folder.path());
        let context = root.join("builder/context.md");
        git(&root, &["branch", "side", "HEAD"]);
        for (branch, text) in [("side", "theirs"), ("-", "ours")] {
            git(&root, &["checkout", "--quiet", branch]);
            for n in 0..2 {
                fs::write(&context, format!("{text} {n}\n")).unwrap();
                git(&root, &["commit", "--quiet", "-am", text]);
            }
        }
        let mut git_of = Command::new("git");
        git_of.args(["-c", "user.name=Me", "-c", "user.email=me@localhost"]);
        git_of.args(begin).current_dir(&root).output().unwrap();
        fs::write(root.join("builder/notes.md"), "new").unwrap();
        let before = dirty(&root);
        let refused = files.checkpoint(&builder(), "notes").unwrap_err();
        assert_eq!(refused, format!("{what} is in progress there"));
        assert_eq!(dirty(&root), before, "{what}");
        assert!(before.contains("?? builder/notes.md"), "{what}: {before}");
    }
}

#[test]
fn commit_waits_for_the_index_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (root, files) = begun(folder.path());
    fs::write(root.join("builder/notes.md"), "new").unwrap();
    let lock = root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let mut waits = 0;
    let said = files.git.commit_when(&["builder".into()], "notes", || {
        waits += 1;
        if waits == 3 {
            fs::remove_file(&lock).unwrap();
        }
    });
    assert!(
        said.as_ref()
            .is_ok_and(|said| said.what.starts_with("commit ")),
        "{said:?}"
    );
    assert_eq!(waits, 3);

    // A stale lock is left for a person to remove.
    fs::write(&lock, "").unwrap();
    fs::write(root.join("builder/notes.md"), "newer").unwrap();
    let mut waits = 0;
    let said = files
        .git
        .commit_when(&["builder".into()], "notes", || waits += 1);
    assert!(
        said.as_ref().is_err_and(|why| why.contains("index.lock")),
        "{said:?}"
    );
    assert_eq!(waits, TRIES - 1);
    assert!(lock.exists());
}

/// git waits forever for a writer of the pipe.
#[test]
fn hanging_git_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (root, mut files) = begun(folder.path());
    let made = Command::new("mkfifo")
        .arg(root.join("builder/.gitignore"))
        .status();
    assert!(made.unwrap().success());
    files.git = files.git.clone().with_patience("0.3");
    let why = files.checkpoint(&builder(), "notes").unwrap_err();
    assert!(why.contains("did not end within"), "{why}");
    let why = files
        .verify(&builder(), SystemTime::UNIX_EPOCH)
        .unwrap_err();
    assert!(why.contains("did not end within"), "{why}");
    assert!(!root.join(".git/index.lock").exists());
}

#[test]
fn too_large_file_is_left_out_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (root, files) = begun(folder.path());
    let large = fs::File::create(root.join("builder/data.bin")).unwrap();
    large.set_len(MAX_COMMITTED + 1).unwrap();
    fs::write(root.join("builder/notes.md"), "new").unwrap();
    let said = files.checkpoint(&builder(), "notes").unwrap();
    assert_eq!(
        said.left_out,
        [r#""builder/data.bin" (larger than 64 MiB)"#]
    );
    assert_eq!(dirty(&root), "?? builder/data.bin\n");
    let said = files.checkpoint(&builder(), "notes").unwrap();
    assert_eq!(
        (said.what.as_str(), said.left_out.len()),
        ("nothing changed", 1)
    );
}

#[test]
fn files_with_odd_names_and_changes_are_committed() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let (root, files) = begun(folder.path());
    let builders = root.join("builder");
    let odd: [&[u8]; 8] = [
        b"two\nlines",
        b"no \xff UTF-8",
        b"-q",
        b"\"quoted\"",
        b":(exclude)a",
        b"*",
        b" ",
        "\u{1f980}".as_bytes(),
    ];
    for name in odd {
        fs::write(builders.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    for name in ["gone", "staged away", "a file", "a link"] {
        fs::write(builders.join(name), name).unwrap();
    }
    fs::create_dir(builders.join("a folder")).unwrap();
    fs::write(builders.join("a folder/in it"), "in it").unwrap();
    let said = files.checkpoint(&builder(), "odd").unwrap();
    assert!(said.what.starts_with("commit "), "{said:?}");
    assert_eq!(dirty(&root), "");

    fs::remove_file(builders.join("gone")).unwrap();
    git(&root, &["rm", "--quiet", "builder/staged away"]);
    fs::write(builders.join("never"), "never").unwrap();
    git(&root, &["add", "builder/never"]);
    fs::remove_file(builders.join("never")).unwrap();
    fs::remove_file(builders.join("a file")).unwrap();
    fs::create_dir(builders.join("a file")).unwrap();
    fs::write(builders.join("a file/in it"), "in it").unwrap();
    fs::remove_dir_all(builders.join("a folder")).unwrap();
    fs::write(builders.join("a folder"), "a file now").unwrap();
    fs::remove_file(builders.join("a link")).unwrap();
    std::os::unix::fs::symlink("nowhere", builders.join("a link")).unwrap();
    let said = files.checkpoint(&builder(), "fates").unwrap();
    assert!(said.what.starts_with("commit "), "{said:?}");
    assert_eq!(dirty(&root), "");
}
