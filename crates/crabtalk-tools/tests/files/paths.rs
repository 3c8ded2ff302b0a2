//! Which paths the tools keep their hands off.

use super::*;

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

/// The judged path is replaced by a link to a secret before the call.
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
            output.is_error
                && output
                    .content
                    .contains("changed after the permission check"),
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
