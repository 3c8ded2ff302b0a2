//! What a sandboxed shell is like: as one outside, but for what is not there.

use crate::support::World;
use crabtalk_domain::tool::ToolOutput;
use crabtalk_guardian::SandboxConfig;
use crabtalk_testkit::tools::{has_tools, skip};
use crabtalk_tools::OsTools;

/// Tools of every machine that this one can play; skips the others by name.
async fn everywhere(test: &str, world: &World) -> Vec<OsTools> {
    let mut all = Vec::new();
    for namespaces in [false, true] {
        let mut config = world.config();
        config.sandbox = SandboxConfig {
            namespaces,
            ..SandboxConfig::default()
        };
        let tools = OsTools::new(config);
        let walls = tools.walls().await;
        if walls.landlock.is_none() || walls.namespaces != namespaces {
            skip(
                test,
                &format!(
                    "namespaces {namespaces} does not work here: {:?}",
                    walls.why
                ),
            );
        } else {
            all.push(tools);
        }
    }
    all
}

async fn boxed(world: &World, tools: &OsTools, command: &str) -> ToolOutput {
    world.bash(tools, command).await
}

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
        (long.as_str(), "the end\n", false),
    ];
    let world = World::new();
    for tools in everywhere("output_codes_and_signals_are_as_outside", &world).await {
        for (command, want, is_error) in cases {
            let output = boxed(&world, &tools, command).await;
            assert!(output.content.ends_with(want), "{command:.60}: {output:?}");
            assert_eq!(output.is_error, is_error, "{command:.60}: {output:?}");
        }
    }
}

#[tokio::test]
async fn what_a_command_needs_is_there() {
    let test = "what_a_command_needs_is_there";
    if !has_tools(test, &["git", "perl"]) {
        return;
    }
    let world = World::new();
    let whole = "echo > /dev/null && head -c 3 /dev/urandom >/dev/null && \
        echo t > /tmp/t && cat /tmp/t && ls -d /proc/self >/dev/null && \
        [ \"$(id -u)\" = \"$(stat -c %u .)\" ] && test -r /etc/passwd && date >/dev/null && \
        git init -q here && cd here && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && \
        git log --format=%s && printf '#!/bin/sh\\necho ran\\n' > run && chmod +x run && ./run";
    for tools in everywhere(test, &world).await {
        let namespaces = tools.walls().await.are_complete();
        let command = if namespaces {
            format!("{whole} && echo m > /dev/shm/m && cat /dev/shm/m")
        } else {
            whole.replace("/tmp/t", "$TMPDIR/t")
        };
        let output = boxed(&world, &tools, &command).await;
        let want = if namespaces {
            "t\nm\nran\nm\n"
        } else {
            "t\nm\nran\n"
        };
        assert_eq!(output.content, want, "{namespaces}");
        std::fs::remove_dir_all(world.cwd.join("here")).unwrap();
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
    ] {
        // Another user has other toolchains, and a machine need not have all.
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
            skip(test, &format!("{tool} is not there for this user"));
            continue;
        }
        for namespaces in [false, true] {
            let mut config = world.config();
            // The toolchains lie in the home of whoever runs the tests.
            for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
                config.environment.retain(|(known, _)| known != name);
                config
                    .environment
                    .extend(std::env::var_os(name).map(|value| (name.into(), value)));
            }
            config.sandbox = SandboxConfig {
                namespaces,
                ..SandboxConfig::default()
            };
            let tools = OsTools::new(config);
            let walls = tools.walls().await;
            if walls.landlock.is_none() || walls.namespaces != namespaces {
                skip(
                    test,
                    &format!(
                        "namespaces {namespaces} does not work here: {:?}",
                        walls.why
                    ),
                );
                continue;
            }
            let output = boxed(&world, &tools, command).await;
            assert_eq!(
                output.content, want,
                "{tool} in namespaces {namespaces}: {output:?}"
            );
        }
    }
}

#[tokio::test]
async fn other_processes_of_the_command_are_all_that_there_is() {
    let world = World::new();
    for tools in everywhere(
        "other_processes_of_the_command_are_all_that_there_is",
        &world,
    )
    .await
    {
        if tools.walls().await.are_complete() {
            // The first process, the shell and `ls`.
            let output = boxed(&world, &tools, "ls -d /proc/[0-9]* | wc -l").await;
            let count: usize = output.content.trim().parse().unwrap();
            assert!(count <= 4, "{output:?}");
        }
    }
}
