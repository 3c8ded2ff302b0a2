//! No process of a tool outlives its run or the daemon, and none may talk to
//! the daemon (RUN-10, GATE-5).

use crate::rig::{
    CRABTALK, TestEnv, chunks, end_of, eventually, gone, has_tools, stream_to_end, within,
};
use crabtalk_proto::{Client, KillMsg, Ping, StreamMsg};
use futures_util::StreamExt;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use std::fs;

/// A command whose descendants leave its session, its group and its parent.
const ESCAPE: &str = "(setsid sh -c 'echo $$ > away.pid; exec sleep 1000' &) ; \
    sh -c 'echo $$ > near.pid; exec sleep 1000' & wait; sleep 1000";

/// A home whose agent may run commands without asking.
fn permissive() -> TestEnv {
    let env = TestEnv::new();
    env.agent("crab", "mode: full");
    env
}

fn bash(env: &TestEnv, command: &str) -> StreamMsg {
    StreamMsg {
        content: format!("/tool bash {}", json!({ "command": command })),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

/// The process whose number a file comes to hold.
async fn pid_in(env: &TestEnv, file: &str) -> i32 {
    let path = env.work.join(file);
    eventually(file, async || {
        std::fs::read_to_string(&path).ok()?.trim().parse().ok()
    })
    .await
}

#[tokio::test]
async fn a_kill_ends_every_descendant() {
    let env = permissive();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let events = connection.stream(bash(&env, ESCAPE));
    let killing = async {
        let pids = [
            pid_in(&env, "near.pid").await,
            pid_in(&env, "away.pid").await,
        ];
        env.connect().await.kill(KillMsg::default()).await.unwrap();
        pids
    };
    let collected = events.map(Result::unwrap).collect::<Vec<_>>();
    let (events, pids) = within("a killed run", async { tokio::join!(collected, killing) }).await;
    assert_eq!(end_of(&events).code, 499);
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn the_daemons_death_ends_every_descendant() {
    for signal in ["KILL", "TERM"] {
        let env = permissive();
        let daemon = env.daemon().await;
        let mut connection = env.connect().await;
        let mut events = std::pin::pin!(connection.stream(bash(&env, ESCAPE)));
        events.next().await.unwrap().unwrap();
        let pids = [
            pid_in(&env, "near.pid").await,
            pid_in(&env, "away.pid").await,
        ];
        if signal == "KILL" {
            daemon.kill().await;
        } else {
            assert!(daemon.terminate().await.success());
        }
        for pid in pids {
            gone(pid).await;
        }
    }
}

#[tokio::test]
async fn a_command_that_ends_leaves_nothing_behind() {
    let env = permissive();
    let _daemon = env.daemon().await;
    let command = "setsid sh -c 'echo $$ > away.pid; exec sleep 1000' & \
        while [ ! -s away.pid ]; do :; done; echo left";
    let events = stream_to_end(&env, bash(&env, command)).await;
    assert!(chunks(&events).contains("left"));
    gone(pid_in(&env, "away.pid").await).await;
}

#[tokio::test]
async fn a_tool_process_may_not_talk_to_the_daemon() {
    let env = permissive();
    let daemon = env.daemon().await;
    let home = env.home.display();
    for way in ["", "setsid ", "setsid setsid -f "] {
        let command = format!(
            "{way}'{CRABTALK}' --home '{home}' stats > out 2>&1; \
             until [ -s out ]; do :; done; cat out"
        );
        // A command that names the home would be denied before that.
        env.script("client", &format!("#!/bin/sh\n{command}"));
        let events = stream_to_end(&env, bash(&env, "./client")).await;
        let text = chunks(&events);
        assert!(
            text.contains("processes that an agent started may not talk to the daemon"),
            "{way}: {text}"
        );
    }
    assert!(daemon.stderr().contains("a tool process tried to connect"));
}

/// Each try forks a chain whose parents end while the daemon looks at who
/// connects. Says `won` if the daemon answers anything but an error.
const RACE: &str = r#"
use IO::Socket::UNIX;
my ($socket, $tries) = @ARGV;
open(my $in, '<', 'ping.bin'); binmode $in; read($in, my $ping, 64);
for (1 .. $tries) {
    my $first = fork // die;
    if (!$first) {
        for (1 .. 1 + int rand 6) {
            if (fork // 0) { select(undef, undef, undef, rand 0.001) if rand() < 0.7; exit; }
        }
        my $s = IO::Socket::UNIX->new(Peer => $socket) or exit;
        syswrite $s, $ping;
        sysread($s, my $answer, 5) == 5 or exit;
        if (substr($answer, 4) ne "\x0a") { open(my $won, '>', 'won'); }
        exit;
    }
    waitpid $first, 0;
}
"#;

/// How often the race is run; it was won once in seven hundred times.
const TRIES: u32 = 700;

#[tokio::test]
async fn parents_that_end_while_the_daemon_looks_hide_nobody() {
    if !has_tools("parents_that_end", &["perl"]) {
        return;
    }
    let env = permissive();
    let _daemon = env.daemon().await;
    env.script("race.pl", RACE);
    fs::write(env.work.join("ping.bin"), ping_frame()).unwrap();
    let socket = env.socket();
    let command = format!("perl race.pl '{}' {TRIES}; echo done", socket.display());
    env.script("race", &format!("#!/bin/sh\n{command}"));
    let events = stream_to_end(&env, bash(&env, "./race")).await;
    assert!(chunks(&events).contains("done"), "{}", chunks(&events));
    assert!(!env.work.join("won").exists(), "a command got in");
    env.connect().await.ping(Ping {}).await.unwrap();
}

fn ping_frame() -> bytes::BytesMut {
    let mut frame = bytes::BytesMut::new();
    let ping: crabtalk_proto::ClientMessage = Ping {}.into();
    crabtalk_proto::codec::encode(&ping, &mut frame).unwrap();
    frame
}

/// A process that got away from everything that owned it still has what it
/// cannot take off.
#[tokio::test]
async fn who_bears_the_mark_of_a_command_is_refused_wherever_it_runs() {
    let env = permissive();
    let _daemon = env.daemon().await;
    let marked = "bash -c 'ulimit -x 5 && exec \"$CRABTALK\" stats'";
    let said = env.shell(marked).await.fails(3);
    assert!(said.contains("processes that an agent started"), "{said}");
}

#[tokio::test]
async fn a_lack_of_descriptors_is_reported_as_such() {
    let env = permissive();
    let daemon = env.daemon().await;
    env.connect().await.ping(Ping {}).await.unwrap();
    let pid = daemon.pid();
    let in_use = |number: &u64| {
        let path = format!("/proc/{}/fd/{number}", pid.as_raw_nonzero());
        fs::symlink_metadata(path).is_ok()
    };
    // The next one is the connection's own; none is left to look at it. What else the
    // daemon opens and closes in its first moments may free one more.
    let refused = eventually("a refusal", async || {
        let next = (0..).find(|number| !in_use(number))?;
        let limit = Rlimit {
            current: Some(next + 1),
            ..getrlimit(Resource::Nofile)
        };
        let old = prlimit(Some(pid), Resource::Nofile, limit).unwrap();
        let answer = env.connect_silently().await.ping(Ping {}).await;
        prlimit(Some(pid), Resource::Nofile, old).unwrap();
        let refused = answer.err()?.to_string();
        refused.contains("(503)").then_some(refused)
    })
    .await;
    assert!(refused.contains("cannot look at who connects"), "{refused}");
    env.connect().await.ping(Ping {}).await.unwrap();
    assert!(!daemon.stderr().contains("a tool process"));
}

#[tokio::test]
async fn commands_have_the_limit_of_open_files_that_the_daemon_was_started_with() {
    let env = permissive();
    let limit = 256;
    let daemon = env.daemon_with_open_files(limit).await;
    let pid = daemon.pid().as_raw_nonzero();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let own = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let own = own.and_then(|line| line.split_whitespace().nth(3)).unwrap();
    assert!(
        own.parse::<u64>().unwrap() > limit,
        "it has more itself: {own}"
    );
    let events = stream_to_end(&env, bash(&env, "echo limit $(ulimit -n) end")).await;
    let text = chunks(&events);
    assert!(text.contains(&format!("limit {limit} end")), "{text}");
}

#[tokio::test]
async fn commands_do_not_see_the_daemons_keys() {
    let mut env = permissive();
    env.set("OPENAI_API_KEY_FOR_TESTS", "planted-key");
    env.set("SOME_TOKEN", "planted-token");
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, bash(&env, "env; echo PATH is $PATH")).await;
    let text = chunks(&events);
    assert!(text.contains("PATH is /"), "{text}");
    assert!(!text.contains("planted"), "{text}");
}

/// An upgrade puts another program in its place, whose guardian may be told what it does
/// not understand; some take the old one away.
#[tokio::test]
async fn a_daemon_whose_program_is_replaced_or_removed_runs_commands_as_before() {
    let env = permissive();
    let program = env.root().join("crabtalk");
    if fs::hard_link(CRABTALK, &program).is_err() {
        fs::copy(CRABTALK, &program).unwrap();
    }
    let _daemon = env.daemon_of(&program).await;
    let said = async |word: &str| {
        let events = stream_to_end(&env, bash(&env, &format!("echo it is {word}"))).await;
        chunks(&events)
    };
    assert!(said("there").await.contains("\nit is there"));
    env.write("other", "no program at all");
    fs::rename(env.user_home.join("other"), &program).unwrap();
    let after = said("replaced").await;
    assert!(after.contains("\nit is replaced"), "{after}");
    fs::remove_file(&program).unwrap();
    let after = said("removed").await;
    assert!(after.contains("\nit is removed"), "{after}");
}
