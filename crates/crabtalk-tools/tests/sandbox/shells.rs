//! A sandboxed shell is as one outside, but for what is not there.

use crate::support::World;
use crate::{complete, everywhere};
use crabtalk_testkit::tools::{has_tools, skip};
use crabtalk_tools::OsTools;

#[tokio::test]
async fn output_codes_and_signals_are_as_outside() {
    let long = format!("echo {}; echo the end", "x".repeat(200_000));
    let cases = [
        ("echo out; echo err >&2", "out\nerr\n", false),
        ("exit 3", "[exit code 3]", true),
        ("kill -9 $$", "[killed by signal 9]", true),
        ("kill -TERM $$; sleep 1000", "[killed by signal 15]", true),
        ("(exit 7) & wait $!", "[exit code 7]", true),
        ("cat /dev/stdin; echo $?", "0\n", false),
        ("diff <(echo a) <(echo a) && echo same", "same\n", false),
        ("sleep 1000 & echo gone", "gone\n", false),
        (
            "echo x > f; mkdir -p a/b; mv f a/b/g; cat a/b/g; rm -r a",
            "x\n",
            false,
        ),
        (
            "echo t > $TMPDIR/t; cat $TMPDIR/t; ls /usr >/dev/null",
            "t\n",
            false,
        ),
        (
            "echo > /dev/null; head -c 3 /dev/urandom | wc -c; ls -d /proc/self; date >/dev/null",
            "3\n/proc/self\n",
            false,
        ),
        (
            "[ \"$(id -u)\" = \"$(stat -c %u .)\" ] && printf '#!/bin/sh\\necho ran' > r; chmod +x r; ./r",
            "ran\n",
            false,
        ),
        (long.as_str(), "the end\n", false),
    ];
    let world = World::new();
    for (_, tools) in everywhere("output_codes_and_signals_are_as_outside", &world).await {
        for (command, want, is_error) in cases {
            let output = world.bash(&tools, command).await;
            assert!(output.content.ends_with(want), "{command:.60}: {output:?}");
            assert_eq!(output.is_error, is_error, "{command:.60}: {output:?}");
        }
    }
}

#[tokio::test]
async fn toolchains_of_the_person_work_inside() {
    let test = "toolchains_of_the_person_work_inside";
    let world = World::new();
    for (tool, command, want) in [
        (
            "cargo",
            "cargo init -q --vcs none --name x made && cd made && cargo run -q --offline; cd .. && rm -rf made",
            "Hello, world!\n",
        ),
        (
            "python3",
            "python3 -c 'import json, ssl; print(json.dumps(1))'",
            "1\n",
        ),
        ("node", "node -e 'console.log(1)'", "1\n"),
        (
            "npm",
            "printf '{\"scripts\":{\"say\":\"echo 1\"}}' > package.json; npm run -s say; rm package.json",
            "1\n",
        ),
        (
            "make",
            "printf 'say:\n\t@echo 1\n' > Makefile; make -s say",
            "1\n",
        ),
        (
            "pip",
            "mkdir x-1.dist-info && echo 'n = 1' > x.py && touch x-1.dist-info/RECORD && \
             printf 'Metadata-Version: 2.1\nName: x\nVersion: 1\n' > x-1.dist-info/METADATA && \
             printf 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > x-1.dist-info/WHEEL && \
             python3 -m zipfile -c x-1-py3-none-any.whl x.py x-1.dist-info && rm -r x.py x-1.dist-info && \
             python3 -m pip install -q --no-index --target made x-1-py3-none-any.whl 2>/dev/null; \
             PYTHONPATH=made python3 -c 'import x; print(x.n)'; rm -rf made *.whl",
            "1\n",
        ),
        (
            "go",
            "mkdir go && cd go && printf 'module x\n' > go.mod && \
             printf 'package main\nfunc main() { println(1) }\n' > x.go && go run . 2>&1; cd .. && rm -rf go",
            "1\n",
        ),
        (
            "pytest",
            "echo 'def test_x(): assert True' > test_x.py; pytest -q 2>/dev/null | grep -o '1 passed'; rm test_x.py",
            "1 passed\n",
        ),
    ] {
        // Another user has other toolchains, and a machine need not have all.
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
            skip(test, &format!("{tool} is not there for this user"));
            continue;
        }
        for namespaces in [false, true] {
            let mut config = world.config();
            // The toolchains are in the home of the user who runs the tests.
            for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
                config.environment.retain(|(known, _)| known != name);
                let value = std::env::var_os(name).map(|value| (name.into(), value));
                config.environment.extend(value);
            }
            config.sandbox.namespaces = namespaces;
            let tools = OsTools::new(config);
            if tools.walls().await.namespaces == namespaces {
                let output = world.bash(&tools, command).await;
                assert_eq!(output.content, want, "{tool} {namespaces}: {output:?}");
            }
        }
    }
}

#[tokio::test]
async fn activated_python_environment_is_readable() {
    let world = World::new();
    let venv = world.root.join("venv");
    for folder in ["bin", "lib"] {
        std::fs::create_dir_all(venv.join(folder)).unwrap();
    }
    std::fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    std::fs::write(venv.join("lib/module.py"), "found\n").unwrap();
    let mut config = world.config();
    let path = format!("{}:/usr/bin:/bin", venv.join("bin").display());
    config.environment.retain(|(name, _)| name != "PATH");
    config.environment.push(("PATH".into(), path.into()));
    let tools = OsTools::new(config);
    let read = format!("cat {}", venv.join("lib/module.py").display());
    let output = world.bash(&tools, &read).await;
    assert_eq!(output.content, "found\n", "{output:?}");
}

#[tokio::test]
async fn processes_of_the_command_are_all_there_are() {
    let world = World::new();
    let test = "processes_of_the_command_are_all_there_are";
    if let Some(tools) = complete(test, &world).await {
        // The first process, the shell and `ls`.
        let output = world.bash(&tools, "ls -d /proc/[0-9]* | wc -l").await;
        let count: usize = output.content.trim().parse().unwrap();
        assert!(count <= 4, "{output:?}");
    }
}

#[tokio::test]
async fn temporary_folder_is_gone_afterwards() {
    let world = World::new();
    let shared = world.root.join("tmp");
    std::fs::create_dir(&shared).unwrap();
    let mut config = world.config();
    let temporary = ("TMPDIR".into(), shared.clone().into());
    config.environment.push(temporary);
    let command = "touch $TMPDIR/f; cd $TMPDIR; ls f";
    let output = world.bash(&OsTools::new(config), command).await;
    assert_eq!(output.content, "f\n");
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 0);
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let world = World::new();
    let outside = world.root.join("outside");
    std::fs::write(&outside, "old").unwrap();
    // The shared temporary folders are outside as well.
    let elsewhere = std::env::temp_dir().join(format!("crabtalk-escaped-{}", std::process::id()));
    let command = format!(
        "echo new > {0}; : > {0}; truncate -s 0 {0}; rm -f {0}; mv {0} .; ln {0} hard; touch {1}/new; \
         echo x > ../up; echo x > {2}; ln -s {0} soft; echo x > soft; echo tried",
        outside.display(),
        world.root.display(),
        elsewhere.display()
    );
    for (_, tools) in everywhere("nothing_is_written_outside", &world).await {
        let output = world.bash(&tools, &command).await;
        assert!(output.content.ends_with("tried\n"), "{output:?}");
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&world.root).unwrap().count(), 2);
        assert!(!world.user_home.join("up").exists() && !elsewhere.exists());
    }
}

#[tokio::test]
async fn keys_and_the_home_are_not_read() {
    let world = World::new();
    for file in [
        ".ssh/key",
        ".crabtalk/config/config.toml",
        "diary",
        ".netrc",
    ] {
        let path = world.user_home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "secret").unwrap();
    }
    std::os::unix::fs::symlink(&world.home, world.cwd.join("innocent")).unwrap();
    let command = "cat ~/.ssh/key ~/.crabtalk/config/config.toml ~/diary ~/.netrc innocent/config/config.toml \
        /proc/self/root/$HOME/.netrc /proc/$PPID/environ /proc/$PPID/root/$HOME/.netrc; cp -r ~/.ssh .; ls ~/.ssh; echo tried";
    for (_, tools) in everywhere("keys_and_the_home_are_not_read", &world).await {
        let output = world.bash(&tools, command).await;
        assert!(output.content.ends_with("tried\n"), "{output:?}");
        assert!(!output.content.contains("secret"), "{output:?}");
        assert!(!output.content.contains("\nkey\n"), "{output:?}");
        assert!(!world.cwd.join(".ssh/key").exists());
    }
}

#[tokio::test]
async fn crabtalk_home_below_the_folder_is_neither_read_nor_moved() {
    let mut world = World::new();
    world.home = world.cwd.join("sub/.crabtalk");
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("secret"), "secret").unwrap();
    let command = "cat sub/.crabtalk/secret; touch sub/.crabtalk/new; rm -rf sub/.crabtalk; mv sub s; \
        mv sub/.crabtalk c; cat s/.crabtalk/secret c/secret; echo tried";
    let test = "crabtalk_home_below_the_folder_is_neither_read_nor_moved";
    for (_, tools) in everywhere(test, &world).await {
        let output = world.bash(&tools, command).await;
        assert!(output.content.ends_with("tried\n"), "{output:?}");
        assert!(!output.content.contains("secret\n"), "{output:?}");
        assert!(!world.home.join("new").exists());
        let kept = std::fs::read_to_string(world.home.join("secret"));
        assert_eq!(kept.unwrap(), "secret");
    }
}

/// `io_uring` would make sockets past the filter; so would the numbers of the
/// x32 convention. 13 is "permission denied": the filter's answer.
#[tokio::test]
async fn system_calls_around_the_filter_are_denied() {
    let test = "system_calls_around_the_filter_are_denied";
    if !has_tools(test, &["perl"]) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let world = World::new();
    for (_, tools) in everywhere(test, &world).await {
        // `io_uring_setup`, `socket` of the families NETLINK and UNIX.
        for (call, want) in [
            ("425, 1, 0", "13"),
            ("41, 16, 3, 0", "13"),
            ("0x40000000 + 41, 16, 3, 0", "13"),
            ("0x40000000 + 425, 1, 0", "13"),
            ("41, 1, 1, 0", "0"),
        ] {
            let command = format!("perl -e '$! = 0; syscall({call}); print $!+0'");
            assert_eq!(world.bash(&tools, &command).await.content, want, "{call}");
        }
    }
}

#[tokio::test]
async fn changed_configuration_counts_for_the_next_command() {
    let world = World::new();
    let tools = world.tools();
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    let write = format!("touch {}/f && echo written", outside.display());
    let before = world.bash(&tools, &write).await;
    assert!(!before.content.contains("written"), "{before:?}");
    tools.set_sandbox(crabtalk_guardian::SandboxConfig {
        write: vec![outside.clone()],
        ..crabtalk_guardian::SandboxConfig::default()
    });
    assert_eq!(world.bash(&tools, &write).await.content, "written\n");
    assert!(outside.join("f").exists());
}
