//! Previews of changes.

use super::*;

async fn previewed(world: &World, name: &str, arguments: Value) -> Result<Preview, String> {
    let (tools, call) = (world.tools(), world.call(name, arguments));
    let subject = tools.subject(&call).await?;
    let preview = tools.preview(&call, &subject).await?;
    Ok(preview.expect("a change has one"))
}

#[tokio::test]
async fn a_preview_is_all_of_a_change_and_names_its_outcome() {
    let world = World::new();
    std::fs::write(world.cwd.join("f"), "a\nb\nc").unwrap();
    let edit = json!({"path": "f", "old_string": "b", "new_string": "x"});
    let edit = previewed(&world, "edit", edit).await.unwrap();
    assert_eq!(
        (edit.kind, edit.text.as_str()),
        (
            PreviewKind::Diff,
            "--- before\n+++ after\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n\\ No newline at end of file\n"
        )
    );
    let write = json!({"path": "f", "content": "a\nx\nc"});
    let write = previewed(&world, "write", write).await.unwrap();
    assert_eq!((&write.exact, &write.before), (&edit.exact, &edit.before));
    assert_eq!(write.text, edit.text);
    let other = json!({"path": "f", "content": "a\ny\nc"});
    let other = previewed(&world, "write", other).await.unwrap();
    assert_ne!(other.exact, write.exact);
    let none = json!({"path": "f", "old_string": "z", "new_string": "x"});
    let error = previewed(&world, "edit", none).await.unwrap_err();
    assert!(error.contains("was not found"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_compared_is_shown_whole() {
    let world = World::new();
    let new = json!({"path": "new/file", "content": "text"});
    for (old, note) in [
        (None, "the file is new"),
        (
            Some(vec![0xff, 0xfe]),
            "it replaces 2 bytes; the old file is not UTF-8",
        ),
        (
            Some(b"line\n".repeat(400_000)),
            "it replaces 2000000 bytes of text",
        ),
    ] {
        if let Some(old) = old {
            std::fs::create_dir_all(world.cwd.join("new")).unwrap();
            std::fs::write(world.cwd.join("new/file"), old).unwrap();
        }
        let preview = previewed(&world, "write", new.clone()).await.unwrap();
        assert_eq!(
            (preview.kind, preview.text.as_str()),
            (PreviewKind::Content, "text")
        );
        assert!(preview.note.starts_with(note), "{preview:?}");
    }
    // Looking made nothing.
    let fresh = World::new();
    previewed(&fresh, "write", new).await.unwrap();
    assert!(!fresh.cwd.join("new").exists());
}

#[tokio::test]
async fn comparing_what_has_nothing_in_common_ends_in_time() {
    let world = World::new();
    let lines = |seed: u64| -> String {
        let mut state = seed;
        let mut line = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            format!("{}\n", state >> 40)
        };
        (0..60_000).map(|_| line()).collect()
    };
    std::fs::write(world.cwd.join("f"), lines(1)).unwrap();
    let write = json!({"path": "f", "content": lines(2)});
    let preview = previewed(&world, "write", write).await.unwrap();
    // But for a few that are equal by chance.
    assert!(preview.text.matches("\n-").count() > 59_000);
}

#[tokio::test]
async fn a_change_is_made_as_it_was_shown_or_not_at_all() {
    for (name, arguments) in [
        (
            "edit",
            json!({"path": "f", "old_string": "a", "new_string": "b"}),
        ),
        ("write", json!({"path": "f", "content": "b"})),
    ] {
        let world = World::new();
        let path = world.cwd.join("f");
        std::fs::write(&path, "a").unwrap();
        let (tools, call) = (world.tools(), world.call(name, arguments));
        let subject = tools.subject(&call).await.unwrap();
        let shown = tools.preview(&call, &subject).await.unwrap().unwrap();
        std::fs::write(&path, "a!").unwrap();
        let output = tools.call_as_shown(&call, &subject, &shown).await;
        assert!(
            output.is_error && output.content.contains("after the change was shown"),
            "{output:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a!");
        std::fs::write(&path, "a").unwrap();
        let output = tools.call_as_shown(&call, &subject, &shown).await;
        assert!(!output.is_error, "{output:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    }
}
