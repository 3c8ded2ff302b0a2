//! The folder as people and crashes leave it.

use super::*;
use crate::index::{Level, Query, Shard, search};
use std::fs;

struct Folder {
    _root: tempfile::TempDir,
    path: PathBuf,
    entries: Entries,
}

impl Folder {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("entries");
        fs::create_dir(&path).unwrap();
        Self {
            _root: root,
            entries: Entries::new(path.clone()),
            path,
        }
    }

    fn put(&self, file: &str, name: &str, content: &str) {
        let text = format!("---\nname: {name}\ndescription: d\n---\n\n{content}\n");
        fs::write(self.path.join(file), text).unwrap();
    }

    fn find(&mut self, query: &str) -> Vec<String> {
        self.entries.refresh();
        let index = self.entries.index();
        let shard = Shard {
            index,
            level: Level::Session,
            said: false,
            keep: &|_| true,
            whole: None,
        };
        let found = search(&[shard], &Query::parse(query, None), 10);
        let name = |doc| self.entries.of_doc(doc).map(|(slot, _)| slot.name.clone());
        found
            .iter()
            .map(|f| name(f.doc).expect("every document has an entry"))
            .collect()
    }

    fn warnings(&mut self) -> Vec<String> {
        self.entries.refresh();
        let line = |w: Warning| {
            format!(
                "{} {}",
                w.file.file_name().unwrap().to_string_lossy(),
                w.reason
            )
        };
        self.entries.warnings().into_iter().map(line).collect()
    }
}

#[test]
fn hand_edits_are_seen_by_the_next_look() {
    let mut folder = Folder::new();
    folder.put("a.md", "Tea", "green tea");
    assert_eq!(folder.find("green"), ["Tea"]);
    folder.put("a.md", "Tea", "black tea");
    assert!(folder.find("green").is_empty());
    assert_eq!(folder.find("black"), ["Tea"]);
    folder.put("b.md", "Coffee", "black coffee");
    assert_eq!(folder.find("black").len(), 2);
    fs::rename(folder.path.join("a.md"), folder.path.join("c.md")).unwrap();
    assert_eq!(folder.find("tea"), ["Tea"]);
    fs::remove_file(folder.path.join("c.md")).unwrap();
    assert!(folder.find("tea").is_empty());
}

#[test]
fn the_folder_may_come_go_and_be_replaced() {
    let mut folder = Folder::new();
    fs::remove_dir(&folder.path).unwrap();
    assert!(folder.find("tea").is_empty());
    fs::create_dir(&folder.path).unwrap();
    folder.put("a.md", "Tea", "green tea");
    assert_eq!(folder.find("green"), ["Tea"]);
    fs::rename(&folder.path, folder.path.with_extension("old")).unwrap();
    assert!(folder.find("green").is_empty());
    fs::rename(folder.path.with_extension("old"), &folder.path).unwrap();
    assert_eq!(folder.find("green"), ["Tea"]);
}

#[test]
fn broken_files_are_named_and_hide_nothing() {
    let mut folder = Folder::new();
    folder.put("good.md", "Good", "still found");
    fs::write(folder.path.join("plain.md"), "no frontmatter").unwrap();
    fs::write(folder.path.join("bytes.md"), [b'-', 0xff]).unwrap();
    fs::create_dir(folder.path.join("folder.md")).unwrap();
    fs::write(folder.path.join("large.md"), "x".repeat(1 << 20)).unwrap();
    fs::write(folder.path.join("notes.txt"), "not ours").unwrap();
    assert_eq!(folder.find("found"), ["Good"]);
    assert_eq!(
        folder.warnings(),
        [
            "bytes.md is not UTF-8 text",
            "folder.md is a folder, not a regular file",
            "large.md has more than 278528 bytes",
            "plain.md does not begin with a `---` line",
        ]
    );
    folder.put("plain.md", "Mended", "found too");
    assert_eq!(folder.find("found").len(), 2);
    assert_eq!(folder.warnings().len(), 3);
}

#[test]
fn of_two_files_with_one_name_one_counts() {
    let mut folder = Folder::new();
    folder.put("a.md", "Same", "first words");
    folder.put("b.md", "Same", "second words");
    assert_eq!(folder.find("words").len(), 1);
    assert_eq!(
        folder.warnings(),
        ["b.md has the name \"Same\", as a.md does, which takes precedence"]
    );
    folder.put("same.md", "Same", "third words");
    assert_eq!(folder.find("third"), ["Same"]);
    assert!(folder.find("first").is_empty());
    assert_eq!(folder.warnings().len(), 2);
    fs::remove_file(folder.path.join("same.md")).unwrap();
    assert_eq!(folder.find("first"), ["Same"]);
    fs::remove_file(folder.path.join("a.md")).unwrap();
    assert_eq!(folder.find("second"), ["Same"]);
    assert!(folder.warnings().is_empty());
}

#[test]
fn names_that_slug_alike_stay_apart() {
    let mut folder = Folder::new();
    let entry = |name: &str, sender: &str| Entry {
        name: name.into(),
        sender: sender.into(),
        content: "slugs".into(),
        ..Entry::default()
    };
    let long = "n".repeat(190);
    for (name, sender) in [
        ("a b", ""),
        ("a-b", ""),
        ("A B", ""),
        ("a b", "tg:1"),
        ("a b", "tg-1"),
        (long.as_str(), ""),
    ] {
        folder.entries.write(&entry(name, sender), None).unwrap();
    }
    assert_eq!(folder.find("slugs").len(), 6);
    assert!(folder.warnings().is_empty());
    let again = Folder {
        entries: Entries::new(folder.path.clone()),
        ..folder
    };
    let mut again = again;
    assert_eq!(again.find("slugs").len(), 6, "and after a restart");
}

#[test]
fn a_crash_in_mid_write_leaves_the_old_entry() {
    let mut folder = Folder::new();
    folder.put("a.md", "Tea", "green tea");
    let staged = crabtalk_files::stage(&folder.path.join("a.md"), b"half of").unwrap();
    let (_, left) = staged.keep().unwrap();
    assert_eq!(folder.find("green"), ["Tea"]);
    assert!(!left.exists(), "what a crash left is swept");
    assert!(folder.warnings().is_empty());
}

#[test]
fn linked_files_follow_their_target() {
    let mut folder = Folder::new();
    let target = folder.path.with_extension("elsewhere");
    fs::write(&target, "---\nname: Linked\n---\ngreen").unwrap();
    std::os::unix::fs::symlink(&target, folder.path.join("l.md")).unwrap();
    assert_eq!(folder.find("green"), ["Linked"]);
    fs::write(&target, "---\nname: Linked\n---\nblue").unwrap();
    assert_eq!(folder.find("blue"), ["Linked"]);
    fs::remove_file(&target).unwrap();
    assert!(folder.find("blue").is_empty());
    assert_eq!(folder.warnings().len(), 1);
}

#[test]
fn a_long_entry_is_found_by_its_end_once() {
    let mut folder = Folder::new();
    let filler = "Nothing to see in this sentence. ".repeat(200);
    folder.put(
        "a.md",
        "Long",
        &format!("{filler} The treasure lies under the oak. {filler}"),
    );
    assert_eq!(folder.find("treasure under oak"), ["Long"]);
    assert_eq!(folder.find("sentence"), ["Long"]);
}
