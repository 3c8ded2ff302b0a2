//! Input, output and end of commands.
#![cfg(test)]

mod support;

use crabtalk_domain::tool::ToolOutput;
use serde_json::json;
use support::{World, run};
use tokio::task::JoinSet;

#[tokio::test]
async fn output_and_exit_code_are_told() {
    let world = World::new();
    let tools = world.tools();
    for (command, want) in [
        ("echo hi", ToolOutput::ok("hi\n")),
        ("true", ToolOutput::ok("[no output]")),
        (
            "echo out; echo err >&2; echo out",
            ToolOutput::ok("out\nerr\nout\n"),
        ),
        ("printf x; exit 3", ToolOutput::error("x\n[exit code 3]")),
        ("kill -9 $$", ToolOutput::error("[killed by signal 9]")),
        (
            "printf 'a\\xff\\xfeb'",
            ToolOutput::ok("a\u{fffd}\u{fffd}b"),
        ),
        ("cat; echo end of input", ToolOutput::ok("end of input\n")),
        ("pwd | sed 's,.*/,,'", ToolOutput::ok("work\n")),
        (
            "[[ -n $BASH_VERSION ]] && echo bash",
            ToolOutput::ok("bash\n"),
        ),
    ] {
        assert_eq!(world.outside(&tools, command).await, want, "{command}");
    }
}

#[tokio::test]
async fn a_command_that_makes_no_sense_is_refused_before_the_gate() {
    let world = World::new();
    let tools = world.tools();
    for (arguments, want) in [
        (json!({ "command": " " }), "the command is empty"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({}), "missing field `command`"),
        (
            json!({ "command": "ls", "cwd": "/" }),
            "unknown field `cwd`",
        ),
        (
            json!({ "command": "x".repeat((1 << 20) + 1) }),
            "the limit is 1048576",
        ),
    ] {
        let output = world.run(&tools, "bash", arguments).await;
        assert!(
            output.is_error && output.content.contains(want),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn a_working_directory_that_is_gone_is_named() {
    let world = World::new();
    let gone = world.cwd.join("gone");
    let output = run(
        &world.tools(),
        support::call(&gone, "bash", json!({"command": "ls"})),
    )
    .await;
    assert!(
        output.is_error && output.content.contains("gone cannot be used"),
        "{output:?}"
    );
}

#[tokio::test]
async fn children_see_no_secret() {
    let world = World::new();
    let output = world
        .outside(
            &world.tools(),
            "env; cat /proc/$PPID/environ | tr '\\0' '\\n'",
        )
        .await;
    assert!(output.content.contains("CRABTALK=1"), "{output:?}");
    assert!(!output.content.contains("secret"), "{output:?}");
    assert!(!output.content.contains("CARGO_PKG_NAME"), "{output:?}");
}

#[tokio::test]
async fn a_command_longer_than_an_argument_runs() {
    let world = World::new();
    let command = format!("#{}\necho $((40 + 2))", "x".repeat(300_000));
    assert_eq!(
        world.outside(&world.tools(), &command).await,
        ToolOutput::ok("42\n")
    );
}

#[tokio::test]
async fn long_output_is_shortened_and_kept_whole_where_read_finds_it() {
    let world = World::new();
    let tools = world.tools();
    let output = world.outside(&tools, "seq 1 20000").await;
    assert!(!output.is_error);
    assert!(output.content.len() < 31_000, "{}", output.content.len());
    assert!(output.content.starts_with("1\n2\n3\n") && output.content.ends_with("\n20000\n"));
    let from = output
        .content
        .find("the whole output is in ")
        .expect("names the file")
        + 23;
    let path = output.content[from..].split(']').next().unwrap().to_owned();
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);

    let page = json!({ "path": path, "offset": 9999, "limit": 1 });
    let seen = world.run(&tools, "read", page.clone()).await;
    assert!(seen.content.contains("9999\t9999\n"), "{seen:?}");

    let mut stranger = world.call("read", page);
    stranger.key = crabtalk_domain::ConversationKey::new("crab", "stranger").unwrap();
    let refused = run(&tools, stranger).await;
    assert!(
        refused.is_error && refused.content.contains("closed"),
        "{refused:?}"
    );
    let changed = json!({ "path": path, "content": "" });
    assert!(
        world
            .run(&tools, "write", changed)
            .await
            .content
            .contains("not changed")
    );
}

/// The time of every command is up at once, however long it took to begin; from then on
/// time goes by as ever.
async fn time_is_up() {
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(500)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_timeout_ends_it_and_says_so() {
    let world = World::new();
    let alive = world.fifo("alive");
    let tools = world.tools();
    let arguments = json!({
        "command": "echo begun; echo $$ > alive; exec sleep 1000", "escalate": true, "timeout_ms": 500_000,
    });
    let begun = async {
        let process = alive.receive_process().await;
        time_is_up().await;
        process
    };
    let (output, process) = tokio::join!(world.run(&tools, "bash", arguments), begun);
    assert!(process.is_gone());
    assert!(output.is_error, "{output:?}");
    assert!(
        output
            .content
            .starts_with("begun\n[timed out after 500000 ms"),
        "{output:?}"
    );
}

#[tokio::test]
async fn nothing_outlives_the_shell() {
    let world = World::new();
    let (alive, go) = (world.fifo("alive"), world.fifo("go"));
    let tools = world.tools();
    // A separate session, deaf to hangup, forked twice, holding the output.
    let command = "setsid nohup bash -c '(trap \"\" TERM; (sleep 1000 & echo $! > alive; wait) &)' & read _ < go; echo done";
    let test = async {
        let process = alive.receive_process().await;
        go.send().await;
        process
    };
    let (output, process) = tokio::join!(world.outside(&tools, command), test);
    assert!(process.is_gone());
    assert!(
        !output.is_error && output.content.ends_with("done\n"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_dropped_call_ends_everything_before_the_shutdown_does() {
    let world = World::new();
    let alive = world.fifo("alive");
    let tools = std::sync::Arc::new(world.tools());
    let deaf = "trap '' TERM INT HUP; setsid bash -c 'trap \"\" TERM; echo $$ > alive; while :; do sleep 0.1; done' & wait";
    let call = world.call("bash", json!({ "command": deaf, "escalate": true }));
    let mut calls = JoinSet::new();
    let running = std::sync::Arc::clone(&tools);
    calls.spawn(async move { run(&running, call).await });
    let process = alive.receive_process().await;
    calls.shutdown().await;
    tools.shut_down().await;
    // By itself it would live for ever.
    assert!(process.is_gone());
}

#[tokio::test]
async fn a_stopped_guardian_does_not_keep_its_command_alive() {
    for stop in [
        "kill -STOP $PPID; exec sleep 1000",
        "while :; do kill -STOP $PPID; done",
    ] {
        let world = World::new();
        let alive = world.fifo("alive");
        let tools = world.tools();
        let command = format!("echo $PPID $$ > alive; {stop}");
        let arguments = json!({ "command": command, "escalate": true, "timeout_ms": 500_000 });
        let begun = async {
            let processes = alive.receive_processes().await;
            time_is_up().await;
            processes
        };
        let (output, processes) = tokio::join!(world.run(&tools, "bash", arguments), begun);
        assert_eq!(processes.len(), 2);
        assert!(processes.iter().all(|p| p.ends_within_secs(60)), "{stop}");
        assert!(output.content.contains("timed out"), "{output:?}");
    }
}

#[tokio::test]
async fn signals_to_its_own_group_stay_there() {
    let world = World::new();
    let output = world
        .outside(&world.tools(), "echo before; kill -TERM 0")
        .await;
    assert_eq!(output, ToolOutput::error("before\n[killed by signal 15]"));
}

#[tokio::test]
async fn many_run_at_once() {
    let world = World::new();
    let tools = std::sync::Arc::new(world.tools());
    let mut calls = JoinSet::new();
    for n in 0..40 {
        let (tools, call) = (
            tools.clone(),
            world.call(
                "bash",
                json!({ "command": format!("echo {n}"), "escalate": true }),
            ),
        );
        calls.spawn(async move { (n, run(&tools, call).await) });
    }
    while let Some(done) = calls.join_next().await {
        let (n, output) = done.unwrap();
        assert_eq!(output, ToolOutput::ok(format!("{n}\n")));
    }
}

#[tokio::test]
async fn after_shutting_down_nothing_starts() {
    let world = World::new();
    let tools = world.tools();
    tools.shut_down().await;
    let output = world.outside(&tools, "echo hi").await;
    assert_eq!(output, ToolOutput::error("the daemon is shutting down"));
}

#[tokio::test]
async fn a_guardian_that_cannot_be_started_is_named() {
    let world = World::new();
    let mut config = world.config();
    config.guardian.program = "/nowhere/crabtalk".into();
    let output = world
        .outside(&crabtalk_tools::OsTools::new(config), "echo hi")
        .await;
    assert!(
        output.is_error && output.content.contains("/nowhere/crabtalk"),
        "{output:?}"
    );
}

#[tokio::test]
async fn non_guardian_program_is_an_error() {
    let world = World::new();
    let mut config = world.config();
    config.guardian.program = "true".into();
    let output = world
        .outside(&crabtalk_tools::OsTools::new(config), "echo hi")
        .await;
    assert!(output.is_error, "{output:?}");
}
