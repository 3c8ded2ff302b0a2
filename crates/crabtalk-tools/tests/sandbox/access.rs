//! Granted and reduced access of commands.

use crate::support::World;
use crate::{complete, everywhere, granted};
use crabtalk_domain::tool::{CommandAccess, Subject, ToolProvider};
use crabtalk_testkit::tools::skip;
use crabtalk_tools::OsTools;
use serde_json::json;
use std::path::PathBuf;

#[tokio::test]
async fn call_asks_for_access() {
    let world = World::new();
    let arguments = json!({
        "command": "x", "escalate": true, "hosts": ["Crates.IO"], "write": ["../work", "~/work"],
        "reason": " to publish ",
    });
    let subject = world.tools().subject(&world.call("bash", arguments)).await;
    let Ok(Subject::Command(command)) = subject else {
        panic!("{subject:?}");
    };
    let expected = CommandAccess {
        outside: true,
        read_only: false,
        hosts: vec!["crates.io".into()],
        write: vec![world.cwd.clone(), world.cwd.clone()],
        reason: "to publish".into(),
    };
    assert_eq!(command.access, expected);
    for wrong in [
        json!({ "command": "x", "hosts": ["http://x"] }),
        json!({ "command": "x", "write": ["~"] }),
        json!({ "command": "x", "write": ["~/.crabtalk"] }),
    ] {
        let call = world.call("bash", wrong);
        assert!(world.tools().subject(&call).await.is_err(), "{call:?}");
    }
}

#[tokio::test]
async fn granted_access_decides_what_is_writable() {
    let world = World::new();
    let other = world.root.join("other");
    std::fs::create_dir(&other).unwrap();
    let tools = world.tools();
    let command = format!(
        "for f in . {} ~ \"$TMPDIR\"; do touch $f/f 2>/dev/null && echo yes || echo no; done",
        other.display()
    );
    let home = if tools.walls().await.are_complete() {
        // A home of the command's own.
        "yes"
    } else {
        "no"
    };
    let write = vec![other.clone()];
    for (access, cwd, granted_path) in [
        (CommandAccess::default(), "yes", "no"),
        (
            CommandAccess {
                read_only: true,
                ..CommandAccess::default()
            },
            "no",
            "no",
        ),
        (
            CommandAccess {
                write: write.clone(),
                ..CommandAccess::default()
            },
            "yes",
            "yes",
        ),
        (
            CommandAccess {
                write,
                read_only: true,
                ..CommandAccess::default()
            },
            "no",
            "no",
        ),
    ] {
        let output = granted(&world, &tools, &command, access.clone()).await;
        let expected = format!("{cwd}\n{granted_path}\n{home}\nyes\n");
        assert_eq!(output.content, expected, "{access:?}");
        assert!(!world.user_home.join("f").exists());
    }
}

#[tokio::test]
async fn home_is_never_a_writable_folder() {
    for above in [false, true] {
        let mut world = World::new();
        for file in [".ssh/key", ".vault-token", ".crabtalk/x", "note"] {
            let path = world.user_home.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "secret").unwrap();
        }
        std::fs::write(world.user_home.join("note"), "seen").unwrap();
        let home = world.user_home.clone();
        world.cwd = if above {
            world.root.clone()
        } else {
            home.clone()
        };
        let command = format!(
            "cd {}; cat .ssh/key .vault-token .crabtalk/x; touch new; cat note; echo x > \"$TMPDIR/t\" && echo written",
            home.display()
        );
        let output = world.bash(&world.tools(), &command).await;
        assert!(output.content.ends_with("seenwritten\n"), "{output:?}");
        assert!(!output.content.contains("secret"), "{output:?}");
        assert!(!home.join("new").exists());
    }
}

#[tokio::test]
async fn failure_at_a_wall_says_how_to_ask() {
    let world = World::new();
    let tools = world.tools();
    let output = world.bash(&tools, "touch /usr/crabtalk-x").await;
    assert!(
        output.is_error && output.content.contains("escalate"),
        "{output:?}"
    );
    for other in ["exit 3", "echo Permission denied"] {
        let output = world.bash(&tools, other).await;
        assert!(!output.content.contains("escalate"), "{output:?}");
    }
}

#[tokio::test]
async fn outside_drops_writable_folders_from_path() {
    let world = World::new();
    let (planted, elsewhere) = (world.cwd.join("bin"), world.root.join("tmp"));
    std::fs::create_dir(&elsewhere).unwrap();
    let mut config = world.config();
    let path = format!(
        "{}:bin::{}:/usr/bin:/bin",
        planted.display(),
        elsewhere.display()
    );
    config.environment.retain(|(name, _)| name != "PATH");
    config
        .environment
        .push(("PATH".into(), path.clone().into()));
    config.environment.push(("TMPDIR".into(), elsewhere.into()));
    let tools = OsTools::new(config);
    let output = world.outside(&tools, "echo $PATH").await;
    assert_eq!(output.content, "/usr/bin:/bin\n");
    let output = world.bash(&tools, "echo $PATH").await;
    assert_eq!(output.content, format!("{path}\n"));
}

#[tokio::test]
async fn command_has_no_capabilities_and_no_files_of_root() {
    let test = "command_has_no_capabilities_and_no_files_of_root";
    let world = World::new();
    let command = "grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u; \
        cat /etc/shadow /etc/gshadow /etc/sudoers 2>/dev/null; chown 1 . 2>/dev/null && echo owned; \
        ls /root 2>/dev/null; unshare -m true 2>/dev/null && echo left; true";
    for (_, tools) in everywhere(test, &world).await {
        let output = world.bash(&tools, command).await;
        assert_eq!(output.content, "0000000000000000\n");
    }
}

#[tokio::test]
async fn hosts_are_reached_by_the_proxy_and_private_ones_are_not() {
    let test = "hosts_are_reached_by_the_proxy_and_private_ones_are_not";
    let world = World::new();
    let Some(tools) = complete(test, &world).await else {
        return;
    };
    for (name, text) in [
        (".env", "secret"),
        (".env.example", "example"),
        ("sub/tls.key", "secret"),
    ] {
        let path = world.cwd.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Through the proxy, as any program asks it, and past it.
    let command = format!(
        r#"address=${{HTTPS_PROXY#http://}}; to=/dev/tcp/${{address%:*}}/${{address#*:}}
        for host in 127.0.0.1 localhost other.example; do
            exec 3<>$to; printf 'CONNECT %s:{port} HTTP/1.1\r\n\r\n' $host >&3; head -n 1 <&3; exec 3>&-
        done
        (: < /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo past
        cat .env sub/tls.key .env.example; mv sub moved; cat moved/tls.key; rm -f .env 2>/dev/null; echo"#
    );
    let hosts = ["127.0.0.1", "localhost"].map(String::from).to_vec();
    let access = CommandAccess {
        hosts,
        ..CommandAccess::default()
    };
    let output = granted(&world, &tools, &command, access).await;
    let refused = "HTTP/1.1 403 Forbidden\n".repeat(3);
    assert_eq!(
        output.content.replace('\r', ""),
        format!("{refused}example\n")
    );
    assert!(listener.accept().is_err());
    assert_eq!(
        std::fs::read_to_string(world.cwd.join(".env")).unwrap(),
        "secret"
    );
    // Without hosts the files are there, and no proxy is.
    let output = world.bash(&tools, "cat .env; echo $HTTPS_PROXY").await;
    assert_eq!(output.content, "secret\n");
}

#[tokio::test]
async fn hosts_are_refused_without_namespaces() {
    let world = World::new();
    let mut config = world.config();
    config.sandbox.namespaces = false;
    let access = CommandAccess {
        hosts: vec!["*".into()],
        ..CommandAccess::default()
    };
    let output = granted(&world, &OsTools::new(config), "echo ran", access).await;
    assert!(
        output.is_error && output.content.contains("namespaces"),
        "{output:?}"
    );
}

#[tokio::test]
async fn loopback_inside_serves_test_suites() {
    let test = "loopback_inside_serves_test_suites";
    let world = World::new();
    let Some(tools) = complete(test, &world).await else {
        return;
    };
    let command = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die; \
        $c = IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) or die; print \"served\\n\"'";
    assert_eq!(world.bash(&tools, command).await.content, "served\n");
}

#[tokio::test]
async fn caches_are_private_to_the_project() {
    let test = "caches_are_private_to_the_project";
    let world = World::new();
    let cache = world.user_home.join(".cache/pip");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("wheel"), "mine").unwrap();
    std::fs::create_dir_all(world.user_home.join(".cargo/bin")).unwrap();
    let Some(tools) = complete(test, &world).await else {
        return;
    };
    let change = "cat ~/.cache/pip/wheel 2>/dev/null; echo theirs > ~/.cache/pip/wheel; mkdir -p ~/.cache/new ~/.cargo/registry; \
        touch ~/.cargo/registry/x; touch ~/.cargo/bin/cargo 2>/dev/null && echo planted; true";
    let first = world.bash(&tools, change).await;
    assert!(
        !first.is_error && !first.content.contains("planted"),
        "{first:?}"
    );
    if !first.content.starts_with("mine") {
        skip(test, "overlay mounts: private caches begin empty here");
    }
    let again = world
        .bash(
            &tools,
            "cat ~/.cache/pip/wheel; ls ~/.cache ~/.cargo/registry",
        )
        .await;
    assert!(
        again.content.contains("theirs") && again.content.contains("new\n"),
        "{again:?}"
    );
    assert_eq!(
        std::fs::read_to_string(cache.join("wheel")).unwrap(),
        "mine"
    );
    assert!(!world.user_home.join(".cargo/registry").exists());
    let mut other = World::new();
    other.user_home = world.user_home.clone();
    let call = crate::support::call(
        &other.cwd,
        "bash",
        json!({ "command": "cat ~/.cache/pip/wheel" }),
    );
    let elsewhere = crate::support::run(&tools, call).await;
    assert!(!elsewhere.content.contains("theirs"), "{elsewhere:?}");
    // A second mount of the same cache finds nothing left of the first.
    let work = std::fs::read_dir(world.home.join("state/caches")).unwrap();
    let left = work.flat_map(|p| std::fs::read_dir(p.unwrap().path().join("work")).unwrap());
    assert_eq!(
        left.map(|e| e.unwrap().path()).collect::<Vec<PathBuf>>(),
        [] as [PathBuf; 0]
    );
}
