//! A component with faults.

use crate::world::{Chance, World};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Minimum pause between two faults of a component, and the maximum random
/// addition.
const REST_MS: (u64, u64) = (1_000, 6_000);

/// The same for the configured program, whose restarts are delayed
/// increasingly.
const PROGRAM_REST_MS: (u64, u64) = (3_000, 4_000);

/// Maximum time for which a component stays dead or stopped.
const AWAY_MS: u64 = 3_000;

/// Interval of checks for a port file.
const LOOK: Duration = Duration::from_millis(10);

/// Time for a component to announce itself on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(240);

/// The number of each fault.
#[derive(Debug, Default)]
pub(super) struct Tally {
    killed: u64,
    moved: u64,
    stopped: u64,
    killed_while_stopped: u64,
    replaced: u64,
    withdrawn: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.killed += other.killed;
        self.moved += other.moved;
        self.stopped += other.stopped;
        self.killed_while_stopped += other.killed_while_stopped;
        self.replaced += other.replaced;
        self.withdrawn += other.withdrawn;
    }

    /// Whether each fault has occurred.
    pub(super) fn is_everything(&self) -> bool {
        let Self {
            killed,
            moved,
            stopped,
            killed_while_stopped,
            replaced,
            withdrawn,
        } = self;
        let all = [
            killed,
            moved,
            stopped,
            killed_while_stopped,
            replaced,
            withdrawn,
        ];
        all.into_iter().all(|count| *count > 0)
    }
}

pub(super) struct Beast {
    name: String,
    child: Child,
    port: u16,
}

/// The path of the scripted test server.
pub(super) fn server() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rig/mcp_server.py").into()
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().expect("it was not waited for");
    let pid = Pid::from_raw(pid.cast_signed()).expect("a child's number");
    kill_process(pid, signal).unwrap();
}

impl Beast {
    /// Starts a component, on this port if given, and waits for its port file.
    pub(super) async fn start(world: &World, name: &str, port: Option<u16>) -> Self {
        let file = port_file(world, name);
        fs::create_dir_all(file.parent().expect("it has a folder")).unwrap();
        let mut command = Command::new("python3");
        command
            .arg(server())
            .arg("http")
            .arg(&file)
            .env("PORT", port.unwrap_or(0).to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let announced = async {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    panic!("{name} ended at once: {status}");
                }
                let pid = child.id().unwrap().to_string();
                let text = fs::read_to_string(&file).unwrap_or_default();
                let mut lines = text.lines();
                if let (Some(port), true) = (lines.next(), lines.next() == Some(&pid)) {
                    return port.parse().unwrap();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let port = tokio::time::timeout(START_DEADLINE, announced)
            .await
            .expect("it announces itself");
        Self {
            name: name.to_owned(),
            child,
            port,
        }
    }

    /// Causes one fault after the other until the end. The component then runs.
    pub(super) async fn suffer(
        mut self,
        world: std::sync::Arc<World>,
        mut chance: Chance,
        until: CancellationToken,
    ) -> (Self, Tally) {
        let mut tally = Tally::default();
        while !until.is_cancelled() {
            let rest = Duration::from_millis(REST_MS.0 + chance.below(REST_MS.1));
            for_a_while(rest, &until).await;
            if until.is_cancelled() {
                break;
            }
            let away = Duration::from_millis(chance.below(AWAY_MS));
            match chance.below(6) {
                0 => {
                    self.dies(away, &until).await;
                    self = Self::start(&world, &self.name, Some(self.port)).await;
                    tally.killed += 1;
                }
                1 => {
                    self.dies(away, &until).await;
                    self = Self::start(&world, &self.name, None).await;
                    tally.moved += 1;
                }
                2 => {
                    signal(&self.child, Signal::STOP);
                    for_a_while(away, &until).await;
                    signal(&self.child, Signal::CONT);
                    tally.stopped += 1;
                }
                3 => {
                    signal(&self.child, Signal::STOP);
                    for_a_while(away, &until).await;
                    self.dies(Duration::ZERO, &until).await;
                    self = Self::start(&world, &self.name, None).await;
                    tally.killed_while_stopped += 1;
                }
                4 => {
                    // Both run for a moment.
                    let next = Self::start(&world, &self.name, None).await;
                    self.dies(Duration::ZERO, &until).await;
                    self = next;
                    tally.replaced += 1;
                }
                _ => {
                    // As in a regular end.
                    fs::remove_file(port_file(&world, &self.name)).unwrap();
                    self.dies(away, &until).await;
                    self = Self::start(&world, &self.name, None).await;
                    tally.withdrawn += 1;
                }
            }
        }
        (self, tally)
    }

    /// Kills the component with SIGKILL, and waits before the restart.
    async fn dies(&mut self, away: Duration, until: &CancellationToken) {
        self.child.kill().await.unwrap();
        for_a_while(away, until).await;
    }

    /// Ends the component.
    pub(super) async fn end(mut self, world: &World) {
        fs::remove_file(port_file(world, &self.name)).unwrap();
        self.child.kill().await.unwrap();
    }
}

/// Waits, but not beyond the end of the faults.
async fn for_a_while(time: Duration, until: &CancellationToken) {
    tokio::select! {
        () = until.cancelled() => {}
        () = tokio::time::sleep(time) => {}
    }
}

fn port_file(world: &World, name: &str) -> PathBuf {
    world.home().join(format!("run/{name}.port"))
}

/// Kills the configured program from time to time; returns how often.
pub(super) async fn kill_programs(
    world: std::sync::Arc<World>,
    mut chance: Chance,
    until: CancellationToken,
) -> u64 {
    let (mut killed, mut seen) = (0, 0);
    while !until.is_cancelled() {
        let rest = Duration::from_millis(PROGRAM_REST_MS.0 + chance.below(PROGRAM_REST_MS.1));
        for_a_while(rest, &until).await;
        let starts = fs::read_to_string(world.folder().join("starts")).unwrap_or_default();
        let starts: Vec<i32> = starts.lines().filter_map(|pid| pid.parse().ok()).collect();
        // A killed or ended process has no pid.
        let last = starts.last().filter(|_| starts.len() > seen);
        if let Some(pid) = last.and_then(|pid| Pid::from_raw(*pid)) {
            seen = starts.len();
            killed += u64::from(kill_process(pid, Signal::KILL).is_ok());
        }
    }
    killed
}
