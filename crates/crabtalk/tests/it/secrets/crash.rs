//! A crash writes no key to disk, and no other process can read one.

use super::{files, hold_no_key, planted};
use crate::rig::{
    ALLOW_CORES, Daemon, ModelServer, TestEnv, WITHOUT_RIGHTS, eventually, gone, within,
};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, GetStats, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tokio::process::Command;

/// A daemon with keys during two runs: one waits for its model, one for a command.
struct Midway {
    env: TestEnv,
    daemon: Daemon,
    guardian: Pid,
    _model: ModelServer,
}

impl Midway {
    async fn start() -> Self {
        let command = json!({"command": "echo $PPID > guardian.pid; exec sleep 1000"});
        let model = ModelServer::start(Script::openai([
            openai::pieces(&["half an ", "answer"]).stall_after(2),
            openai::tools("c", &[("bash", command)]),
        ]))
        .await;
        let env = planted(&model);
        env.agent("crab", "description: stalls");
        env.agent("other", "model: two\npermissions: { bash: allow }");
        let daemon = env.daemon_of_a_user().await;
        for agent in ["crab", "other"] {
            let mut connection = env.connect().await;
            let mut events = std::pin::pin!(connection.stream(StreamMsg {
                agent: agent.into(),
                content: "hello".into(),
                cwd: Some(env.work.display().to_string()),
                ..StreamMsg::default()
            }));
            // Each command gets its answer before the next request.
            loop {
                let event = within("an answer", events.next()).await.unwrap().unwrap();
                if let Some(Event::Chunk(_) | Event::ToolStart(_)) = event.event {
                    break;
                }
            }
        }
        let file = env.work.join("guardian.pid");
        let guardian = eventually("a command that runs", async || {
            let text = std::fs::read_to_string(&file).ok()?;
            Pid::from_raw(text.trim().parse().ok()?)
        })
        .await;
        let stats = env.connect().await.get_stats(GetStats::default()).await;
        assert_eq!(stats.unwrap().running, 2);
        Self {
            env,
            daemon,
            guardian,
            _model: model,
        }
    }
}

/// Whether this system writes core files; a container's limits may prevent it.
async fn system_dumps() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{ALLOW_CORES}; kill -s ABRT $$")])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = within("a shell that crashes", shell.wait()).await.unwrap();
    status.core_dumped()
}

#[tokio::test]
async fn crash_during_runs_leaves_no_key_on_disk() {
    let dumps = system_dumps().await;
    if !dumps {
        println!("this system writes no core files; the remaining files are checked");
    }
    for signal in [Signal::ABORT, Signal::SEGV] {
        let Midway {
            env,
            daemon,
            guardian,
            _model,
        } = Midway::start().await;
        // The guardian, which has no key, may leave a core file.
        kill_process(guardian, signal).unwrap();
        let status = daemon.crash(signal).await;
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        // The kernel reports this regardless of the file's path.
        assert!(!status.core_dumped(), "{status:?}");
        gone(guardian.as_raw_nonzero().get()).await;
        let mut left = Vec::new();
        files(env.root(), &mut left);
        assert!(left.iter().any(|(path, _)| path.ends_with(".jsonl")));
        hold_no_key(&left);
    }
}

#[tokio::test]
async fn no_process_reads_the_daemons_memory_or_environment() {
    let Midway {
        env,
        daemon,
        guardian,
        _model,
    } = Midway::start().await;
    let daemon = daemon.pid().as_raw_nonzero();
    let guardian = guardian.as_raw_nonzero();
    for file in ["environ", "maps", "mem"] {
        assert!(!opens(&env, &format!("/proc/{daemon}/{file}")).await);
        // Only the daemon is protected.
        assert!(opens(&env, &format!("/proc/{guardian}/{file}")).await);
    }
    let file = format!("/proc/{guardian}/environ");
    let environment = std::fs::read(&file).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    hold_no_key(&[(file, environment)]);
}

/// Whether another process of this user can open a file to read it.
async fn opens(env: &TestEnv, file: &str) -> bool {
    let script = format!("{WITHOUT_RIGHTS} sh -c ': < {file}'");
    env.shell(&script).await.code == Some(0)
}
