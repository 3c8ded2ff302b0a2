//! The sandbox, verified by trying to get out of it. Where the kernel has no
//! landlock, a sandboxed command must not run at all.
#![cfg(test)]
#![cfg(target_os = "linux")]

mod access;
mod attacks;
mod bait;
mod ordinary;
mod repository;
mod shells;
mod swaps;
mod table;

#[path = "../support/mod.rs"]
mod support;

use crabtalk_domain::tool::{Access, ShellCommand, Subject, ToolOutput, ToolProvider};
use crabtalk_tools::OsTools;
use serde_json::json;
use std::sync::Arc;
use support::{World, run};

/// Runs a command in the sandbox; `None` where the kernel cannot, after
/// checking that nothing ran.
async fn boxed(world: &World, tools: &OsTools, command: &str) -> Option<ToolOutput> {
    let output = world.bash(tools, command).await;
    if output.content.contains("the sandbox cannot be set up") {
        assert!(
            output.is_error && output.content.contains("was not run: "),
            "{output:?}"
        );
        assert!(!landlock_is_there(), "{output:?}");
        return None;
    }
    Some(output)
}

/// Runs a command with what the gate is taken to have granted.
async fn granted(world: &World, tools: &OsTools, command: &str, access: Access) -> ToolOutput {
    let call = world.call("bash", json!({ "command": command }));
    let text = command.to_owned();
    let subject = Subject::Command(ShellCommand { text, access });
    tools.call(&call, &subject).await
}

/// What holds on this machine.
async fn walls_of(world: &World) -> Arc<crabtalk_guardian::Walls> {
    world.tools().walls().await
}

/// Asks the kernel without restricting anything.
fn landlock_is_there() -> bool {
    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))
        .and_then(|ruleset| ruleset.create())
        .is_ok()
}

/// Every escape fails, and what surrounds it works.
async fn check(prepare: impl Fn(&World), command: &str, want: &str) {
    let world = World::new();
    prepare(&world);
    let Some(output) = boxed(&world, &world.tools(), command).await else {
        return;
    };
    assert_eq!(output.content, want, "{command}");
}

#[tokio::test]
async fn the_working_directory_and_a_private_temporary_folder_are_open() {
    check(
        |w| std::fs::write(w.cwd.join("f"), "x").unwrap(),
        "cat f; echo y > f; mkdir -p a/b; mv f a/b/g; cat a/b/g; rm -r a; \
         echo t > $TMPDIR/t; cat $TMPDIR/t; ls /usr >/dev/null && echo usr",
        "xy\nt\nusr\n",
    )
    .await;
}

#[tokio::test]
async fn the_temporary_folder_is_gone_afterwards() {
    let world = World::new();
    let shared = world.root.join("tmp");
    std::fs::create_dir(&shared).unwrap();
    let mut config = world.config();
    config
        .environment
        .push(("TMPDIR".into(), shared.clone().into()));
    // What else is in the folder depends on where the tests were built.
    let command = "touch $TMPDIR/f; cd $TMPDIR; ls f";
    let Some(output) = boxed(&world, &OsTools::new(config), command).await else {
        return;
    };
    assert_eq!(output.content, "f\n");
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 0);
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let world = World::new();
    let outside = world.root.join("outside");
    std::fs::write(&outside, "old").unwrap();
    std::fs::create_dir(world.root.join("folder")).unwrap();
    // The shared temporary folders are outside as well.
    let elsewhere = std::env::temp_dir().join(format!("crabtalk-escaped-{}", std::process::id()));
    let command = format!(
        "echo new > {0}; : > {0}; truncate -s 0 {0}; rm -f {0}; mv {0} .; ln {0} hard; \
         touch {1}/folder/new; mkdir {1}/made; echo x > ../up; echo x > {2}; \
         ln -s {0} soft; echo x > soft; chmod 000 /nonexistent; echo tried",
        outside.display(),
        world.root.display(),
        elsewhere.display()
    );
    let Some(output) = boxed(&world, &world.tools(), &command).await else {
        return;
    };
    assert!(output.content.ends_with("tried\n"), "{output:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "old");
    let mut names: Vec<_> = std::fs::read_dir(&world.root)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["folder", "outside", "user"]);
    assert_eq!(
        std::fs::read_dir(world.root.join("folder"))
            .unwrap()
            .count(),
        0
    );
    assert!(!world.user_home.join("up").exists());
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn keys_and_the_home_are_not_read() {
    let world = World::new();
    for file in [
        ".ssh/id_ed25519",
        ".crabtalk/config/config.toml",
        "documents/diary",
        ".netrc",
    ] {
        let path = world.user_home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "secret").unwrap();
    }
    std::os::unix::fs::symlink(&world.home, world.cwd.join("innocent")).unwrap();
    let command = "cat ~/.ssh/id_ed25519 ~/.crabtalk/config/config.toml ~/documents/diary ~/.netrc \
        innocent/config/config.toml /proc/self/root/$HOME/.netrc; \
        ls ~/.ssh ~/.crabtalk ~; cat /proc/$PPID/environ /proc/$PPID/root/$HOME/.netrc; \
        cp -r ~/.ssh .; echo tried";
    let Some(output) = boxed(&world, &world.tools(), command).await else {
        return;
    };
    assert!(output.content.ends_with("tried\n"), "{output:?}");
    assert!(!output.content.contains("secret"), "{output:?}");
    assert!(!output.content.contains("id_ed25519\n"), "{output:?}");
    assert!(!world.cwd.join(".ssh/id_ed25519").exists());
}

#[tokio::test]
async fn crabtalk_home_below_the_folder_is_neither_read_nor_moved() {
    let mut world = World::new();
    world.home = world.cwd.join("sub/.crabtalk");
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("secret"), "secret").unwrap();
    let command = "cat sub/.crabtalk/secret; touch sub/.crabtalk/new; rm -rf sub/.crabtalk; mv sub s; \
        mv sub/.crabtalk c; cat s/.crabtalk/secret c/secret; echo tried";
    let Some(output) = boxed(&world, &world.tools(), command).await else {
        return;
    };
    assert!(output.content.ends_with("tried\n"), "{output:?}");
    assert!(!output.content.contains("secret\n"), "{output:?}");
    assert!(!world.home.join("new").exists());
    let kept = std::fs::read_to_string(world.home.join("secret"));
    assert_eq!(kept.unwrap(), "secret");
}

/// `io_uring` would make sockets past the filter; so would the numbers of the
/// x32 convention. 13 is "permission denied": the filter's answer.
#[tokio::test]
async fn system_calls_that_lead_around_the_filter_are_denied() {
    if std::process::Command::new("perl")
        .arg("-v")
        .output()
        .is_err()
    {
        return;
    }
    let attempt = |call: &str| format!("perl -e '$! = 0; syscall({call}); print $!+0, \"\\n\"'");
    check(|_| {}, &attempt("425, 1, 0"), "13\n").await;
    if cfg!(target_arch = "x86_64") {
        check(|_| {}, &attempt("41, 16, 3, 0"), "13\n").await;
        check(|_| {}, &attempt("0x40000000 + 41, 16, 3, 0"), "13\n").await;
        check(|_| {}, &attempt("0x40000000 + 425, 1, 0"), "13\n").await;
        // Unix sockets remain.
        check(|_| {}, &attempt("41, 1, 1, 0"), "0\n").await;
    }
}

#[tokio::test]
async fn no_child_is_left_behind() {
    let world = World::new();
    let (alive, go) = (world.fifo("alive"), world.fifo("go"));
    let tools = world.tools();
    // Whoever is left holds the pipe open.
    let command =
        "setsid nohup bash -c '(trap \"\" TERM; exec 9>alive; sleep 1000 & wait)' & cat go";
    let call = world.call("bash", json!({ "command": command }));
    if boxed(&world, &tools, "true").await.is_none() {
        return;
    }
    let test = async {
        let held = alive.hold().await;
        go.send().await;
        held
    };
    let (_, held) = tokio::join!(run(&tools, call), test);
    assert!(held.is_closed());
}

#[tokio::test]
async fn signals_do_not_leave_the_sandbox() {
    use landlock::{ABI, Access, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
    let scopes = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(ABI::V6));
    if scopes.is_err() {
        // Before Linux 6.12 killing the guardian ends the command all the same.
        return;
    }
    let deny = "kill -9 $PPID 2>/dev/null || echo denied";
    check(|_| {}, deny, "denied\n").await;
}

#[tokio::test]
async fn the_sandbox_changes_for_the_commands_to_come() {
    let world = World::new();
    let tools = world.tools();
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    let write = format!("touch {}/f && echo written", outside.display());
    let Some(before) = boxed(&world, &tools, &write).await else {
        return;
    };
    assert!(!before.content.contains("written"), "{before:?}");
    tools.set_sandbox(crabtalk_guardian::SandboxConfig {
        write: vec![outside.clone()],
        ..crabtalk_guardian::SandboxConfig::default()
    });
    let after = boxed(&world, &tools, &write).await;
    assert!(after.is_some_and(|o| o.content.contains("written")));
    assert!(outside.join("f").exists());
}
