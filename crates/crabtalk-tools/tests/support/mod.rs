//! A separate world for each test: folders, tools, calls, processes.
#![allow(dead_code, reason = "every test program uses a part of it")]

use crabtalk_domain::records::ChangeJournal;
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider};
use crabtalk_domain::{AgentConfig, AgentName, ConversationKey, Origin};
use crabtalk_guardian::{GuardianCommand, child_environment};
use crabtalk_testkit::MemoryChanges;
use crabtalk_tools::{OsTools, OsToolsConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct World {
    _dir: tempfile::TempDir,
    changes: Arc<MemoryChanges>,
    pub(crate) root: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) user_home: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let world = Self {
            cwd: root.join("user/work"),
            home: root.join("user/.crabtalk"),
            user_home: root.join("user"),
            root,
            _dir: dir,
            changes: Arc::default(),
        };
        for folder in [&world.cwd, &world.home] {
            std::fs::create_dir_all(folder).unwrap();
        }
        world
    }

    pub(crate) fn config(&self) -> OsToolsConfig {
        let own = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", self.user_home.to_str().unwrap().to_owned()),
            ("OPENAI_API_KEY", "sk-secret".to_owned()),
        ];
        OsToolsConfig::new(
            GuardianCommand::new(guardian()),
            &self.home,
            self.home.join("state/outputs"),
            child_environment(own.map(|(n, v)| (n.into(), v.into()))),
            Arc::clone(&self.changes) as Arc<dyn ChangeJournal>,
        )
    }

    pub(crate) fn tools(&self) -> OsTools {
        OsTools::new(self.config())
    }

    pub(crate) fn call(&self, name: &str, arguments: Value) -> Invocation {
        call(&self.cwd, name, arguments)
    }

    pub(crate) async fn run(&self, tools: &OsTools, name: &str, arguments: Value) -> ToolOutput {
        run(tools, self.call(name, arguments)).await
    }

    pub(crate) async fn bash(&self, tools: &OsTools, command: &str) -> ToolOutput {
        self.run(tools, "bash", serde_json::json!({ "command": command }))
            .await
    }

    /// Runs a command as if leaving the sandbox was granted.
    pub(crate) async fn outside(&self, tools: &OsTools, command: &str) -> ToolOutput {
        let arguments = serde_json::json!({ "command": command, "escalate": true });
        self.run(tools, "bash", arguments).await
    }

    pub(crate) fn fifo(&self, name: &str) -> Fifo {
        let path = self.cwd.join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        Fifo(path)
    }
}

/// The guardian as a separate program; elsewhere for a user who may not read
/// the target folder.
fn guardian() -> PathBuf {
    std::env::var_os("CRABTALK_TEST_GUARDIAN").map_or_else(
        || env!("CARGO_BIN_EXE_test-tools-guardian").into(),
        PathBuf::from,
    )
}

pub(crate) fn call(cwd: &Path, name: &str, arguments: Value) -> Invocation {
    Invocation {
        key: ConversationKey::new("crab", "user").unwrap(),
        origin: Origin::local(),
        run: 1,
        root: (ConversationKey::new("crab", "user").unwrap(), 1),
        agent: Arc::new(AgentConfig::new(AgentName::new("crab").unwrap(), "")),
        call_id: "call_1".into(),
        name: name.into(),
        arguments,
        cwd: cwd.to_path_buf(),
    }
}

/// Judges and calls, as the gate does.
pub(crate) async fn run(tools: &OsTools, call: Invocation) -> ToolOutput {
    match tools.subject(&call).await {
        Ok(subject) => tools.call(&call, &subject).await,
        Err(why) => ToolOutput::error(why),
    }
}

pub(crate) async fn judged(tools: &OsTools, call: &Invocation) -> Result<PathBuf, String> {
    match tools.subject(call).await? {
        Subject::Path { path, .. } => Ok(path),
        other @ (Subject::Command(_) | Subject::Other) => panic!("{other:?}"),
    }
}

/// How commands and tests wait for each other.
pub(crate) struct Fifo(PathBuf);

impl Fifo {
    /// The text that a command writes to it.
    pub(crate) async fn receive(&self) -> String {
        let path = self.0.clone();
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path));
        text.await.unwrap().unwrap().trim().to_owned()
    }

    /// The reading end, once a process has opened it for writing.
    pub(crate) async fn hold(&self) -> Held {
        let path = self.0.clone();
        let file = tokio::task::spawn_blocking(move || std::fs::File::open(path));
        Held(file.await.unwrap().unwrap())
    }

    /// Lets a command that reads it go on.
    pub(crate) async fn send(&self) {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || std::fs::write(path, "go\n"))
            .await
            .unwrap()
            .unwrap();
    }

    /// A process whose number a command writes to it.
    pub(crate) async fn receive_process(&self) -> Process {
        self.receive_processes().await.remove(0)
    }

    /// The processes whose numbers a command writes to it.
    pub(crate) async fn receive_processes(&self) -> Vec<Process> {
        let pids = self.receive().await;
        pids.split_whitespace()
            .map(|pid| Process::of(pid.parse().unwrap()))
            .collect()
    }
}

/// A pipe that processes hold open.
pub(crate) struct Held(std::fs::File);

impl Held {
    /// Whether all of them are gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closes_within_secs(0)
    }

    pub(crate) fn closes_within_secs(&self, tv_sec: i64) -> bool {
        let limit = Timespec { tv_sec, tv_nsec: 0 };
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut watched, Some(&limit)).unwrap() > 0
            && watched[0].revents().contains(PollFlags::HUP)
    }
}

/// A process that is alive, held so that its end is noticed.
pub(crate) struct Process(OwnedFd);

impl Process {
    pub(crate) fn of(pid: i32) -> Self {
        Self(pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.ends_within_secs(0)
    }

    pub(crate) fn ends_within_secs(&self, tv_sec: i64) -> bool {
        let limit = Timespec { tv_sec, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)).unwrap() > 0
    }
}
