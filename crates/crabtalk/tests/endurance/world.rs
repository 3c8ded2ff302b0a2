//! A home, a daemon that can be killed, and a reproducible random generator.

use crabtalk_client::{Connection, Endpoint};
use crabtalk_proto::{Client, Ping};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Environment variable with the daemon's program, if it is not the tests' own build.
const PROGRAM: &str = "CRABTALK_PROGRAM";

/// Time for a daemon to answer on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// Interval of checks for the socket.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct World {
    dir: TempDir,
}

pub(crate) struct Daemon {
    child: Child,
}

/// A number from the environment, or the default for the tests.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => default,
    }
}

impl World {
    /// A home whose agent is in mode `full` and uses the model at `url`.
    pub(crate) fn new(url: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("cte").tempdir().unwrap();
        let world = Self { dir };
        fs::create_dir_all(world.home().join("config/agents")).unwrap();
        fs::write(
            world.home().join("config/config.toml"),
            format!(
                "model = \"scripted\"\n[provider.test]\nkind = \"openai\"\nbase_url = \"{url}\"\n\
                 api_key = \"sk-test\"\nmodels = [\"scripted\"]\nmax_retries = 0\n"
            ),
        )
        .unwrap();
        fs::write(
            world.home().join("config/agents/crab.md"),
            "---\npermissions: { bash: allow, read: allow }\n---\nYou are brief.\n",
        )
        .unwrap();
        world
    }

    /// Writes a file below the home.
    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.home().join(path), text).unwrap();
    }

    /// The daemon's and commands' working folder.
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The command that starts the daemon.
    pub(crate) fn command(&self) -> std::process::Command {
        let program =
            std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_crabtalk").into());
        let mut command = std::process::Command::new(program);
        command
            .args(["daemon", "run"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("CRABTALK_HOME", self.home())
            .env("CRABTALK_DETECT", "0")
            .env("CRABTALK_LOG", "error")
            // As long as the limit of a silent call: on a busy machine, a healthy component may also be
            // slow to answer a ping.
            .env("CRABTALK_MCP_PING_MS", "60000")
            .current_dir(self.dir.path());
        command
    }

    /// Starts the daemon and waits for its first Pong.
    pub(crate) async fn start(&self) -> Daemon {
        let child = Command::from(self.command())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut daemon = Daemon { child };
        let answered = async {
            loop {
                if let Some(mut connection) = self.try_connect().await {
                    connection.ping(Ping {}).await.unwrap();
                    return;
                }
                if let Some(status) = daemon.child.try_wait().unwrap() {
                    let log = fs::read_to_string(self.home().join("logs/daemon.log"));
                    panic!("the daemon ended at once ({status}): {log:?}");
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(START_DEADLINE, answered)
            .await
            .expect("the daemon answers");
        daemon
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home().join("daemon.sock")
    }

    /// A connection, if the daemon listens.
    pub(crate) async fn try_connect(&self) -> Option<Connection> {
        let endpoint = Endpoint::of_home(self.home());
        let client = crabtalk_client::Client::new(endpoint, "endurance");
        client.connect().await.ok()
    }
}

impl Daemon {
    fn pid(&self) -> Pid {
        let pid = self.child.id().expect("it was not waited for");
        Pid::from_raw(pid.cast_signed()).expect("a child's number")
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) async fn terminate(mut self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "{status}");
    }

    /// Names and states of its children, including zombies.
    pub(crate) fn children(&self) -> Vec<String> {
        let own = self.pid().as_raw_nonzero().get();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let child = |entry: fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, rest) = stat.rsplit_once(") ")?;
            let parent: i32 = rest.split(' ').nth(1)?.parse().ok()?;
            (parent == own).then(|| format!("{name}) {}", &rest[..1]))
        };
        processes.filter_map(child).collect()
    }

    /// Resident KiB, descriptors and threads.
    pub(crate) fn usage(&self) -> Usage {
        let proc = format!("/proc/{}", self.pid().as_raw_nonzero());
        let status = fs::read_to_string(format!("{proc}/status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let digits = line.unwrap().trim_matches(|c: char| !c.is_ascii_digit());
            digits.parse().unwrap()
        };
        Usage {
            rss_kib: number("VmRSS:"),
            own_kib: number("RssAnon:"),
            threads: number("Threads:"),
            descriptors: fs::read_dir(format!("{proc}/fd")).unwrap().count() as u64,
        }
    }
}

/// The usage of a daemon.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) rss_kib: u64,
    /// The anonymous part of it; a program's code counts once it has run.
    pub(crate) own_kib: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
}

/// A seeded random generator (xorshift64*).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not start alike, and a state of zero would not change.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}
