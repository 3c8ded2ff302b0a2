use super::*;
use std::time::Duration;

fn team(root: &Path) -> Files {
    let config = format!("root = {root:?}\n[agent.BUILDER]\n[agent.REVIEW]\n");
    Files::new(&toml::from_str(&config).unwrap())
}

fn git(root: &Path, words: &[&str]) -> String {
    let output = Command::new("git").args(words).current_dir(root).output();
    check(&output.unwrap()).unwrap()
}

fn builder() -> Name {
    Name::new("builder").unwrap()
}

#[test]
fn init_makes_what_is_missing_and_writes_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("team");
    let files = team(&root);
    let made = files.init().unwrap();
    assert_eq!(made.len(), 2 + 2 * 3 + 2);
    let identity = std::fs::read_to_string(root.join("BUILDER.md")).unwrap();
    assert!(identity.contains("@BUILDER → @RECIPIENT"), "{identity}");
    std::fs::write(root.join("builder/AGENT.md"), "mine").unwrap();
    assert!(files.init().unwrap().is_empty());
    let kept = std::fs::read_to_string(root.join("builder/AGENT.md")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn a_checkpoint_commits_the_agents_own_paths_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let files = team(root);
    files.init().unwrap();
    std::fs::write(root.join("review/notes.md"), "of another").unwrap();
    git(root, &["add", "review/notes.md"]);
    let said = files
        .checkpoint(&builder(), "BUILDER: identity confirmed")
        .unwrap();
    assert!(said.starts_with("commit "), "{said}");
    let shown = git(root, &["show", "--name-only", "--format=%an %s", "HEAD"]);
    assert!(
        shown.starts_with("NEXUS BUILDER: identity confirmed"),
        "{shown}"
    );
    assert!(!shown.contains("review"), "{shown}");
    assert!(git(root, &["status", "--porcelain"]).contains("A  review/notes.md"));
    assert_eq!(
        files.checkpoint(&builder(), "x").unwrap(),
        "nothing changed"
    );
}

#[test]
fn check_28_readiness_is_a_clean_folder_and_a_newer_context() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let files = team(root);
    files.init().unwrap();
    files.checkpoint(&builder(), "begin").unwrap();
    let hour = Duration::from_secs(3600);
    let context = std::fs::metadata(root.join("builder/context.md")).unwrap();
    let changed = context.modified().unwrap();
    let old = files.verify(&builder(), changed + hour).unwrap_err();
    assert!(old.contains("older than the notice"), "{old}");
    assert_eq!(files.verify(&builder(), changed - hour), Ok(()));
    std::fs::write(root.join("builder/new.md"), "x").unwrap();
    let dirty = files.verify(&builder(), changed - hour).unwrap_err();
    assert_eq!(dirty, "builder/new.md is not committed");
    std::fs::write(root.join("review/new.md"), "x").unwrap();
    files.checkpoint(&builder(), "all").unwrap();
    assert_eq!(files.verify(&builder(), changed - hour), Ok(()));
}

#[test]
fn a_line_to_an_agent_of_the_daemon_brings_its_files_along() {
    let folder = tempfile::tempdir().unwrap();
    let files = team(folder.path());
    files.init().unwrap();
    let line = crate::texts::bootstrap(&builder());
    let text = files.behind(&builder(), &line);
    for part in ["# Context compression", "# BUILDER", "# Context of BUILDER"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("# Context consolidation"));
    assert!(files.measure(&builder()) > 0);
}

/// Whatever the repository says is the agents' to write, and is run by nobody.
#[test]
fn a_checkpoint_runs_no_program_that_the_repository_names() {
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
    assert!(said.starts_with("commit "), "{said}");
    assert_eq!(files.verify(&builder(), SystemTime::UNIX_EPOCH), Ok(()));
    assert!(!ran.exists(), "a filter ran");
}

/// An agent that removes the repository does not bring one around it into play.
#[test]
fn where_the_repository_is_gone_none_around_it_gets_a_commit() {
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

#[test]
fn a_link_out_of_the_root_tells_an_agent_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("team");
    let files = team(&root);
    files.init().unwrap();
    std::fs::write(folder.path().join("key"), "a secret").unwrap();
    let context = root.join("builder/context.md");
    std::fs::remove_file(&context).unwrap();
    std::os::unix::fs::symlink("../../key", &context).unwrap();
    let line = crate::texts::bootstrap(&builder());
    let told = files.behind(&builder(), &line);
    assert!(!told.contains("a secret"), "{told}");
    assert!(told.contains("leads out of the team's folder"), "{told}");
    // Within the root it is one of the team's files.
    std::fs::write(root.join("review/context.md"), "known to all").unwrap();
    std::fs::remove_file(&context).unwrap();
    std::os::unix::fs::symlink("../review/context.md", &context).unwrap();
    assert!(files.behind(&builder(), &line).contains("known to all"));
}
