//! What `edit` and `write` change, and what they leave.

use super::*;

#[tokio::test]
async fn edit_replaces_what_is_unique() {
    for (content, arguments, want) in [
        (
            "a b c",
            json!({"old_string": "b", "new_string": "x"}),
            Ok("a x c"),
        ),
        (
            "a b a",
            json!({"old_string": "a", "new_string": "x", "replace_all": true}),
            Ok("x b x"),
        ),
        (
            "a\r\nb\r\nc\r\n",
            json!({"old_string": "a\nb", "new_string": "1\n2\n3"}),
            Ok("1\r\n2\r\n3\r\nc\r\n"),
        ),
        (
            "\u{feff}a",
            json!({"old_string": "a", "new_string": "b"}),
            Ok("\u{feff}b"),
        ),
        (
            "1\na\n3\na\n",
            json!({"old_string": "a", "new_string": "x"}),
            Err("occurs 2 times (lines 2, 4)"),
        ),
        (
            "aaa",
            json!({"old_string": "aa", "new_string": "x"}),
            Err("occurs 2 times (lines 1, 1)"),
        ),
        (
            "ééé",
            json!({"old_string": "éé", "new_string": "x"}),
            Err("occurs 2 times"),
        ),
        (
            "x\n  if a {\n",
            json!({"old_string": "\tif a {", "new_string": "x"}),
            Err("line 2 matches but for white space"),
        ),
        (
            "one\ntwo\n",
            json!({"old_string": "one\nthree", "new_string": "x"}),
            Err("line 1 begins like it"),
        ),
        (
            "one\n",
            json!({"old_string": "four", "new_string": "x"}),
            Err("was not found"),
        ),
        (
            "a",
            json!({"old_string": "", "new_string": "x"}),
            Err("use `write`"),
        ),
        (
            "a",
            json!({"old_string": "a", "new_string": "a"}),
            Err("are the same"),
        ),
    ] {
        let world = World::new();
        let path = world.cwd.join("f");
        std::fs::write(&path, content).unwrap();
        let mut arguments = arguments;
        arguments["path"] = json!("f");
        let output = world.run(&world.tools(), "edit", arguments).await;
        let after = std::fs::read_to_string(&path).unwrap();
        match want {
            Ok(want) => assert!(!output.is_error && after == want, "{after:?} {output:?}"),
            Err(want) => {
                assert!(
                    output.is_error && output.content.contains(want),
                    "{output:?}"
                );
                assert_eq!(after, content);
            }
        }
    }
}

#[tokio::test]
async fn edit_rejects_uneditable_files() {
    let arguments = json!({"path": "f", "old_string": "a", "new_string": "b"});
    check(|_| {}, "edit", arguments.clone(), true, "no such file").await;
    let latin = |w: &World| std::fs::write(w.cwd.join("f"), b"caf\xe9 a").unwrap();
    check(
        latin,
        "edit",
        arguments.clone(),
        true,
        "byte 3 is the first that is not",
    )
    .await;
    let folder = |w: &World| std::fs::create_dir(w.cwd.join("f")).unwrap();
    check(folder, "edit", arguments, true, "is a folder").await;
}

#[tokio::test]
async fn changes_keep_the_mode_and_leave_nothing_else_behind() {
    let world = World::new();
    let tools = world.tools();
    let path = world.cwd.join("script");
    std::fs::write(&path, "echo a\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    let edit = json!({"path": "script", "old_string": "a", "new_string": "b"});
    assert!(!world.run(&tools, "edit", edit).await.is_error);
    assert_eq!(
        path.metadata().unwrap().permissions().mode() & 0o7777,
        0o751
    );
    let output = world
        .run(&tools, "write", json!({"path": "script", "content": "new"}))
        .await;
    assert!(output.content.starts_with("replaced") && output.content.ends_with("(3 bytes)"));
    assert_eq!(
        path.metadata().unwrap().permissions().mode() & 0o7777,
        0o751
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(std::fs::read_dir(&world.cwd).unwrap().count(), 1);
}

#[tokio::test]
async fn write_creates_missing_folders() {
    let world = World::new();
    let output = world
        .run(
            &world.tools(),
            "write",
            json!({"path": "a/b/c.txt", "content": "hi"}),
        )
        .await;
    assert!(
        !output.is_error && output.content.starts_with("created"),
        "{output:?}"
    );
    assert_eq!(
        std::fs::read_to_string(world.cwd.join("a/b/c.txt")).unwrap(),
        "hi"
    );
}

#[tokio::test]
async fn parallel_edits_of_one_file_all_arrive() {
    let world = World::new();
    let tools = std::sync::Arc::new(world.tools());
    let words: Vec<String> = (0..20).map(|n| format!("<{n}>")).collect();
    std::fs::write(world.cwd.join("f"), words.concat()).unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for (n, word) in words.iter().enumerate() {
        let arguments = json!({"path": "f", "old_string": word, "new_string": format!("[{n}]")});
        let (tools, call) = (tools.clone(), world.call("edit", arguments));
        calls.spawn(async move { run(&tools, call).await });
    }
    assert!(calls.join_all().await.iter().all(|o| !o.is_error));
    let want: String = (0..20).map(|n| format!("[{n}]")).collect();
    assert_eq!(std::fs::read_to_string(world.cwd.join("f")).unwrap(), want);
}

/// A write that fails in the middle, as on a full disk: the size limit for
/// files is set around a second process that runs this very test.
#[tokio::test]
async fn a_write_that_fails_leaves_the_old_content_and_no_rest() {
    const AGAIN: &str = "CRABTALK_TEST_LIMITED";
    if let Ok(folder) = std::env::var(AGAIN) {
        let world = World::new();
        let arguments = json!({"path": "f", "content": "x".repeat(1 << 20)});
        let output = run(
            &world.tools(),
            support::call(Path::new(&folder), "write", arguments),
        )
        .await;
        assert!(
            output.is_error && output.content.contains("cannot write"),
            "{output:?}"
        );
        return;
    }
    let world = World::new();
    std::fs::write(world.cwd.join("f"), "old").unwrap();
    let test = "a_write_that_fails_leaves_the_old_content_and_no_rest";
    let again = std::process::Command::new("bash")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\" >/dev/null",
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(AGAIN, &world.cwd)
        .status()
        .unwrap();
    assert!(again.success());
    assert_eq!(std::fs::read_to_string(world.cwd.join("f")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(&world.cwd).unwrap().count(), 1);
}
