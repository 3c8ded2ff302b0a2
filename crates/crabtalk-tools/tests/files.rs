//! What the file tools show and change, and what they keep their hands off.
#![cfg(test)]

mod support;

use crabtalk_domain::tool::{Preview, PreviewKind, Subject, ToolOutput, ToolProvider};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use support::{World, judged, run};

/// Runs one call in a new world that `prepare` furnishes, and expects a
/// result with these words in it.
async fn check(prepare: impl Fn(&World), name: &str, arguments: Value, error: bool, want: &str) {
    let world = World::new();
    prepare(&world);
    let output = world.run(&world.tools(), name, arguments.clone()).await;
    assert!(
        output.is_error == error && output.content.contains(want),
        "{name} {arguments}: wanted {want:?}, got {output:?}"
    );
}

fn file(content: &'static str) -> impl Fn(&World) {
    move |world| std::fs::write(world.cwd.join("f"), content).unwrap()
}

#[tokio::test]
async fn read_shows_numbered_lines_in_pages() {
    let world = World::new();
    let tools = world.tools();
    std::fs::write(world.cwd.join("f"), "one\ntwo\nthree").unwrap();
    for (arguments, want) in [
        (
            json!({"path": "f"}),
            "     1\tone\n     2\ttwo\n     3\tthree\n",
        ),
        (json!({"path": "f", "offset": 3}), "     3\tthree\n"),
        (
            json!({"path": "f", "offset": 2, "limit": 1}),
            "     2\ttwo\n[lines 2 to 2; the file goes on: read with offset 3]\n",
        ),
        (
            json!({"path": "f", "offset": 2, "limit": 2}),
            "     2\ttwo\n     3\tthree\n",
        ),
    ] {
        let output = world.run(&tools, "read", arguments.clone()).await;
        assert_eq!(output, ToolOutput::ok(want), "{arguments}");
    }
}

#[tokio::test]
async fn read_copes_with_every_kind_of_text() {
    check(file(""), "read", json!({"path": "f"}), false, "is empty]").await;
    check(
        file("a\r\nb\r\n"),
        "read",
        json!({"path": "f"}),
        false,
        "1\ta\n     2\tb\n[lines end with CRLF",
    )
    .await;
    check(
        file("\u{feff}a\n"),
        "read",
        json!({"path": "f"}),
        false,
        "     1\ta\n",
    )
    .await;
    check(
        file("a\0b"),
        "read",
        json!({"path": "f"}),
        true,
        "is binary (3 bytes)",
    )
    .await;
    check(
        file("a\n"),
        "read",
        json!({"path": "f", "offset": 3}),
        true,
        "has 1 lines",
    )
    .await;
    check(
        file("a\n"),
        "read",
        json!({"path": "f", "offset": 2}),
        true,
        "has 1 lines",
    )
    .await;
    let latin = |w: &World| std::fs::write(w.cwd.join("f"), b"caf\xe9\n").unwrap();
    check(
        latin,
        "read",
        json!({"path": "f"}),
        false,
        "caf\u{fffd}\n[not all of it is UTF-8",
    )
    .await;
    let wide = |w: &World| std::fs::write(w.cwd.join("f"), "é".repeat(5000) + "\nend\n").unwrap();
    check(
        wide,
        "read",
        json!({"path": "f"}),
        false,
        "é [8000 more bytes in this line]\n     2\tend",
    )
    .await;
    let cut =
        |w: &World| std::fs::write(w.cwd.join("f"), format!("x{}", "é".repeat(5000))).unwrap();
    check(
        cut,
        "read",
        json!({"path": "f"}),
        false,
        "é [8001 more bytes in this line]\n",
    )
    .await;
}

#[tokio::test]
async fn a_huge_file_is_read_in_bounded_pieces() {
    let huge = |w: &World| {
        let file = std::fs::File::create(w.cwd.join("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[b'x'; 10_000], 0).unwrap();
        // Sparse: 1 TiB that nobody could hold.
        file.set_len(1 << 40).unwrap();
    };
    check(
        huge,
        "edit",
        json!({"path": "f", "old_string": "x", "new_string": "y"}),
        true,
        "larger than 16 MiB",
    )
    .await;
    check(
        huge,
        "read",
        json!({"path": "f"}),
        true,
        "more than 256 MiB would have to be gone through",
    )
    .await;
    let lines = |w: &World| {
        let text: String = (1..=9000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(w.cwd.join("f"), text).unwrap();
    };
    check(
        lines,
        "read",
        json!({"path": "f"}),
        false,
        "[lines 1 to 2000; the file goes on: read with offset 2001]",
    )
    .await;
    let long = |w: &World| {
        std::fs::write(w.cwd.join("f"), ("y".repeat(1900) + "\n").repeat(1000)).unwrap()
    };
    check(
        long,
        "read",
        json!({"path": "f"}),
        false,
        "[lines 1 to 25; the file goes on",
    )
    .await;
}

#[tokio::test]
async fn read_lists_a_folder() {
    let furnish = |w: &World| {
        std::fs::create_dir(w.cwd.join("sub")).unwrap();
        std::fs::write(w.cwd.join("a"), "").unwrap();
        symlink("a", w.cwd.join("z")).unwrap();
    };
    check(
        furnish,
        "read",
        json!({"path": "."}),
        false,
        "with 3 entries\na\nsub/\nz@",
    )
    .await;
    let many =
        |w: &World| (0..600).for_each(|n| std::fs::write(w.cwd.join(n.to_string()), "").unwrap());
    check(
        many,
        "read",
        json!({"path": "."}),
        false,
        "[100 more are not shown]",
    )
    .await;
}

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
async fn edit_refuses_what_it_cannot_edit() {
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

#[tokio::test]
async fn a_path_is_judged_where_it_leads() {
    let world = World::new();
    let tools = world.tools();
    std::fs::create_dir_all(world.root.join("other/deep")).unwrap();
    for name in ["other/f", "user/work/f", "user/g"] {
        std::fs::write(world.root.join(name), "x").unwrap();
    }
    symlink("../../other", world.cwd.join("out")).unwrap();
    symlink("../../other/f", world.cwd.join("link")).unwrap();
    for (tool, path, want) in [
        ("read", "f", "user/work/f"),
        ("read", "./out/../other/f", "other/f"),
        ("read", "link", "other/f"),
        // Not `user/work`: `..` is applied where the link leads.
        ("read", "out/deep/../f", "other/f"),
        ("read", "../work/f", "user/work/f"),
        ("read", "~/g", "user/g"),
        ("read", "~", "user"),
        ("write", "link", "other/f"),
        ("write", "out/new", "other/new"),
        ("write", "new/er", "user/work/new/er"),
    ] {
        let call = world.call(tool, json!({"path": path, "content": ""}));
        let mut call = call;
        if tool == "read" {
            call.arguments = json!({"path": path});
        }
        assert_eq!(
            judged(&tools, &call).await,
            Ok(world.root.join(want)),
            "{tool} {path}"
        );
    }
}

#[tokio::test]
async fn paths_that_make_no_sense_are_refused() {
    let odd = |w: &World| {
        symlink("nowhere", w.cwd.join("dangling")).unwrap();
        symlink("loop", w.cwd.join("loop")).unwrap();
        std::fs::write(w.cwd.join("f"), "").unwrap();
        w.fifo("fifo");
        std::os::unix::net::UnixListener::bind(w.cwd.join("socket")).unwrap();
    };
    for (path, want) in [
        ("", "the path is empty"),
        ("a\0b", "NUL"),
        ("~other/x", "another user's home"),
        ("dangling", "a link to something that does not exist"),
        ("dangling/x", "a link to something that does not exist"),
        ("loop", "cannot resolve"),
        ("missing/../f", "no such file"),
        ("f/x", "cannot resolve"),
        (".", "is a folder"),
        ("fifo", "is a named pipe, not a file"),
        ("socket", "is a socket, not a file"),
        ("/dev/null", "is a device, not a file"),
    ] {
        check(
            odd,
            "write",
            json!({"path": path, "content": "x"}),
            true,
            want,
        )
        .await;
        if path != "." && !path.contains("/x") && !path.contains("..") {
            check(odd, "read", json!({"path": path}), true, want).await;
        }
    }
}

#[tokio::test]
async fn the_home_and_processes_secrets_are_closed() {
    let furnish = |w: &World| {
        std::fs::create_dir(w.home.join("config")).unwrap();
        std::fs::write(w.home.join("config/config.toml"), "api_key = 'sk'").unwrap();
        symlink(w.home.join("config"), w.cwd.join("innocent")).unwrap();
    };
    for path in [
        "~/.crabtalk/config/config.toml",
        "../.crabtalk/config/config.toml",
        "innocent/config.toml",
        "innocent",
        "~/.crabtalk",
    ] {
        check(
            furnish,
            "read",
            json!({"path": path}),
            true,
            "closed to tools",
        )
        .await;
    }
    let write = json!({"path": "innocent/new", "content": ""});
    check(furnish, "write", write, true, "closed to tools").await;
    check(
        |_| {},
        "read",
        json!({"path": "/proc/self/environ"}),
        true,
        "process information",
    )
    .await;
    check(
        |_| {},
        "read",
        json!({"path": "/proc/self/root/etc/passwd"}),
        false,
        "1\t",
    )
    .await;
}

#[tokio::test]
async fn the_daemon_opens_parts_of_the_home() {
    let world = World::new();
    let skill = world.home.join("config/skills/feeds");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "how to").unwrap();
    let mut config = world.config();
    config.readable = std::sync::Arc::new(move |_| vec![skill.clone()]);
    let soul = world.home.join("config/Crab.md");
    config.writable = std::sync::Arc::new(move |_| vec![soul.clone()]);
    let tools = crabtalk_tools::OsTools::new(config);
    let path = "~/.crabtalk/config/skills/feeds/SKILL.md";
    let seen = world.run(&tools, "read", json!({"path": path})).await;
    assert!(
        !seen.is_error && seen.content.contains("how to"),
        "{seen:?}"
    );
    let written = world
        .run(&tools, "write", json!({"path": path, "content": ""}))
        .await;
    assert!(
        written.is_error && written.content.contains("not changed"),
        "{written:?}"
    );
}

/// What was judged is swapped for a link to a secret before the call.
#[tokio::test]
async fn a_link_put_there_after_judging_is_not_followed() {
    for (swap, tool) in [
        ("sub/f", "read"),
        ("sub", "read"),
        ("sub/f", "write"),
        ("sub", "write"),
        ("sub", "edit"),
    ] {
        let world = World::new();
        let tools = world.tools();
        let secret = world.root.join("secret");
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("f"), "old secret").unwrap();
        std::fs::create_dir(world.cwd.join("sub")).unwrap();
        std::fs::write(world.cwd.join("sub/f"), "harmless").unwrap();
        let arguments = match tool {
            "read" => json!({"path": "sub/f"}),
            "write" => json!({"path": "sub/f", "content": "new"}),
            _ => json!({"path": "sub/f", "old_string": "old", "new_string": "new"}),
        };
        let call = world.call(tool, arguments);
        let subject = tools.subject(&call).await.unwrap();
        std::fs::rename(world.cwd.join(swap), world.cwd.join("aside")).unwrap();
        let target = if swap == "sub" {
            secret.clone()
        } else {
            secret.join("f")
        };
        symlink(target, world.cwd.join(swap)).unwrap();
        let output = tools.call(&call, &subject).await;
        assert!(
            output.is_error && output.content.contains("changed since it was judged"),
            "{output:?}"
        );
        assert_eq!(
            std::fs::read_to_string(secret.join("f")).unwrap(),
            "old secret"
        );
    }
}

#[tokio::test]
async fn a_call_that_was_judged_on_something_else_does_not_run() {
    let world = World::new();
    let tools = world.tools();
    std::fs::write(world.cwd.join("f"), "x").unwrap();
    let reading = Subject::Path {
        path: world.cwd.join("f"),
        write: false,
    };
    let call = world.call("write", json!({"path": "f", "content": "y"}));
    for subject in [Subject::Other, reading] {
        let output = tools.call(&call, &subject).await;
        assert!(
            output.is_error && output.content.contains("not judged"),
            "{output:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(world.cwd.join("f")).unwrap(), "x");
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

#[tokio::test]
async fn a_conversations_own_outputs_are_its_own_and_nobody_elses() {
    let world = World::new();
    let tools = world.tools();
    let call = world.call("read", json!({"path": "x"}));
    let outputs = tools.outputs_of(&call.key);
    std::fs::create_dir_all(&outputs).unwrap();
    let file = |folder: &std::path::Path, write: bool| Subject::Path {
        path: folder.join("bash-1-1.txt"),
        write,
    };
    assert!(tools.is_own(&call, &file(&outputs, false)));
    assert!(!tools.is_own(&call, &file(&outputs, true)));
    assert!(!tools.is_own(&call, &file(&world.cwd, false)));
    let other = crabtalk_domain::ConversationKey::new("crab", "somebody").unwrap();
    assert!(!tools.is_own(&call, &file(&tools.outputs_of(&other), false)));
}

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

#[tokio::test]
async fn read_shows_an_image_whatever_its_name() {
    let world = World::new();
    let tools = world.tools();
    std::fs::write(world.cwd.join("notes.txt"), PIXEL).unwrap();
    let output = world
        .run(&tools, "read", json!({"path": "notes.txt"}))
        .await;
    assert!(!output.is_error, "{}", output.content);
    assert!(
        output
            .content
            .ends_with("/notes.txt: image/png, 69 bytes, 1 x 1 pixels"),
        "{}",
        output.content
    );
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].to_bytes(), PIXEL);
    let text = "not an image\n";
    std::fs::write(world.cwd.join("a.png"), text).unwrap();
    let output = world.run(&tools, "read", json!({"path": "a.png"})).await;
    assert!(
        output.content.contains("1\tnot an image"),
        "{}",
        output.content
    );
    assert_eq!(output.images, []);
}

#[tokio::test]
async fn an_image_that_no_model_takes_is_told_in_words() {
    let write = |bytes: Vec<u8>| move |w: &World| std::fs::write(w.cwd.join("f"), &bytes).unwrap();
    let path = json!({"path": "f"});
    let cut = PIXEL[..60].to_vec();
    check(
        write(cut),
        "read",
        path.clone(),
        true,
        "is binary (60 bytes)",
    )
    .await;
    let mut wide = PIXEL.to_vec();
    wide[18] = 0x20;
    check(
        write(wide),
        "read",
        path.clone(),
        true,
        "of 8193 x 1 pixels, and 8000 a side can be shown; make a smaller one",
    )
    .await;
    let large = |w: &World| {
        let file = std::fs::File::create(w.cwd.join("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, PIXEL, 0).unwrap();
        file.set_len(crabtalk_domain::MAX_IMAGE_BYTES as u64 + 1)
            .unwrap();
    };
    check(
        large,
        "read",
        path,
        true,
        "of 3932161 bytes, and 3932160 can be shown",
    )
    .await;
}

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
            output.is_error && output.content.contains("when the change was shown"),
            "{output:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a!");
        std::fs::write(&path, "a").unwrap();
        let output = tools.call_as_shown(&call, &subject, &shown).await;
        assert!(!output.is_error, "{output:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    }
}

#[tokio::test]
async fn judging_tells_nothing_of_what_a_path_leads_to() {
    let world = World::new();
    let tools = world.tools();
    std::fs::create_dir(world.root.join("other")).unwrap();
    symlink(world.root.join("other/missing"), world.cwd.join("dangling")).unwrap();
    symlink("loop", world.cwd.join("loop")).unwrap();
    world.fifo("fifo");
    for (path, want) in [
        ("missing", "user/work/missing"),
        ("missing/../missing", "user/work/missing"),
        ("dangling", "other/missing"),
        ("dangling/below", "other/missing/below"),
        ("loop", "user/work/loop"),
        ("fifo", "user/work/fifo"),
        ("fifo/below", "user/work/fifo/below"),
        (".", "user/work"),
    ] {
        for name in ["read", "edit", "write"] {
            let arguments = match name {
                "read" => json!({"path": path}),
                "edit" => json!({"path": path, "old_string": "a", "new_string": "b"}),
                _ => json!({"path": path, "content": ""}),
            };
            let call = world.call(name, arguments);
            assert_eq!(
                judged(&tools, &call).await,
                Ok(world.root.join(want)),
                "{name} {path}"
            );
        }
    }
}
