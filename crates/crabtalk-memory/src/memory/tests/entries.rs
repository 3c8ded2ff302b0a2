//! Entries and their files.

use super::*;

#[tokio::test]
async fn remember_overwrites_entry_and_keeps_manual_fields() {
    let world = World::new();
    world
        .share("user", "Tea", "green", Some(true))
        .await
        .unwrap();
    let file = world.home.path().join("memory/entries/tea.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text,
        "---\nname: Tea\nagent: crab\nsender: user\ncreated: \"2026-03-01T12:00:00Z\"\n\
         updated: \"2026-03-01T12:00:00Z\"\nshared: true\n---\n\ngreen\n"
    );
    std::fs::write(&file, text.replace("shared:", "tags: [hot]\nshared:")).unwrap();
    world.remember("user", "Tea", "black").await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("tags: [hot]\n") && text.contains("shared: true\n"),
        "{text}"
    );
    assert_eq!(world.titles("user", "green").await, [""; 0]);
    assert_eq!(world.titles("user", "black").await, ["Tea"]);
    assert_eq!(
        world.memory.entries(&viewer("tg:9")).await.len(),
        1,
        "still shared"
    );
}

#[tokio::test]
async fn bad_entries_are_refused_by_name() {
    let world = World::new();
    let large = world
        .remember("user", "Big", &"x".repeat(1 << 20))
        .await
        .unwrap_err();
    assert_eq!(
        large,
        "the content of \"Big\" has 1048576 bytes, the limit is 262144; shorten it or use \
         several entries"
    );
    for name in ["", "  ", "two\nlines", &"n".repeat(201)] {
        let refused = world.remember("user", name, "x").await.unwrap_err();
        assert!(refused.contains("not a valid name"), "{refused}");
    }
    world
        .remember("user", "Full", &"word ".repeat(52_000))
        .await
        .unwrap();
    assert_eq!(world.titles("user", "word").await, ["Full"]);
    assert!(world.memory.warnings().await.is_empty());
}

#[tokio::test]
async fn other_scripts_are_found() {
    let world = World::new();
    world
        .remember("user", "犬", "家族の犬はレックスと呼ばれている。")
        .await
        .unwrap();
    world
        .remember("user", "Évian", "L'été à la montagne, près du café")
        .await
        .unwrap();
    assert_eq!(world.titles("user", "犬の名前").await, ["犬"]);
    assert_eq!(world.titles("user", "レックス").await, ["犬"]);
    assert_eq!(world.titles("user", "ete CAFE").await, ["Évian"]);
    assert_eq!(world.titles("user", "cafe\u{301}").await, ["Évian"]);
}

#[tokio::test]
async fn a_guest_cannot_fill_the_disk() {
    let world = World::new();
    let folder = world.home.path().join("memory/entries");
    std::fs::create_dir_all(&folder).unwrap();
    for n in 0..inner::MAX_PER_GUEST {
        let text = format!("---\nname: n{n}\nsender: tg:1\n---\nx");
        std::fs::write(folder.join(format!("n{n}.md")), text).unwrap();
    }
    let refused = world.remember("tg:1", "one more", "x").await.unwrap_err();
    assert!(refused.contains("which is the limit"), "{refused}");
    world
        .remember("tg:1", "n1", "over an old one")
        .await
        .unwrap();
    world.remember("user", "one more", "x").await.unwrap();
}

#[tokio::test]
async fn notes_are_imported_as_copies_with_a_report() {
    let world = World::new();
    let notes = tempfile::tempdir().unwrap();
    let put = |file: &str, text: &str| {
        let file = notes.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    put("Garden.md", "# Garden\n\nThe marmot lives under the shed.");
    put(
        "deep/er/tea.md",
        "---\nname: Tea\ndescription: how to\n---\nThree minutes.",
    );
    put("taken.md", "---\nname: Taken\n---\nnew");
    put("empty.md", "\n");
    put("large.md", &"x".repeat(1 << 20));
    put("other.txt", "not Markdown");
    put(".hidden/a.md", "hidden");
    std::os::unix::fs::symlink("/etc/hostname", notes.path().join("link.md")).unwrap();
    world.remember("user", "Taken", "old").await.unwrap();
    let report = world
        .memory
        .import(&viewer("user"), notes.path())
        .await
        .unwrap();
    let names: Vec<_> = report
        .imported
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(names, ["Garden", "Tea"]);
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|w| format!("{} {}", w.file.file_name().unwrap().display(), w.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            "empty.md is empty",
            "large.md has more than 262144 bytes",
            "taken.md was skipped: a memory entry named \"Taken\" exists",
        ]
    );
    assert_eq!(world.titles("user", "marmot shed").await, ["Garden"]);
    assert_eq!(
        world
            .memory
            .entry(&viewer("user"), "Taken")
            .await
            .unwrap()
            .content,
        "old"
    );
    let absent = world
        .memory
        .import(&viewer("user"), &notes.path().join("no"))
        .await;
    assert!(absent.unwrap_err().to_string().starts_with("cannot read "));
}
