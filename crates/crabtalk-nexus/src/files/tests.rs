use super::*;
use std::time::Duration;

pub(super) fn team(root: &Path) -> Files {
    let config = format!("root = {root:?}\n[agent.BUILDER]\n[agent.REVIEW]\n");
    Files::new(&toml::from_str(&config).unwrap())
}

pub(super) fn builder() -> Name {
    Name::new("builder").unwrap()
}

#[test]
fn init_creates_missing_files_only() {
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
fn readiness_needs_a_clean_folder_and_a_newer_context() {
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
fn message_to_a_daemon_agent_includes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = team(folder.path());
    files.init().unwrap();
    let line = crate::texts::bootstrap(&builder());
    let text = files.behind(&builder(), &line);
    for part in ["# Context compression", "# BUILDER", "# Context of BUILDER"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("# Context consolidation"));
}

/// An agent without its context would continue without its knowledge.
#[test]
fn unreadable_file_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let files = team(folder.path());
    files.init().unwrap();
    let line = crate::texts::bootstrap(&builder());
    let context = folder.path().join("builder/context.md");
    let is_told = |as_it_is: &[u8], reason: &str| {
        std::fs::write(&context, as_it_is).unwrap();
        let told = files.behind(&builder(), &line);
        let (_, told) = told.split_once("builder/context.md:\n```\n").unwrap();
        assert!(
            told.starts_with("(not shown: it ") && told.contains(reason),
            "{told}"
        );
        assert!(told.contains("read the file itself"), "{told}");
    };
    is_told(&vec![b'x'; MAX_FILE as usize + 1], "65536");
    is_told(b"\xff\xfe", "text");
}

#[test]
fn link_out_of_the_root_is_not_followed() {
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
    assert!(told.contains("a link out of the team's folder"), "{told}");
    // Inside the root, a linked file is one of the team's files.
    std::fs::write(root.join("review/context.md"), "known to all").unwrap();
    std::fs::remove_file(&context).unwrap();
    std::os::unix::fs::symlink("../review/context.md", &context).unwrap();
    assert!(files.behind(&builder(), &line).contains("known to all"));
}
