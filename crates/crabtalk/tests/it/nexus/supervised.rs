//! NEXUS in a separate process that can be killed: this test program again.

use super::speaker::Speaker;
use crate::rig::{CRABTALK, TestEnv, eventually};
use crabtalk_guardian::GuardianCommand;
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::control;
use crabtalk_nexus::start::{self, Places};
use crabtalk_nexus::world::{Answer, Command, Task};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::process::Child;

/// Environment variable with the home, for the other process.
const HOME: &str = "CRABTALK_E2E_NEXUS";

/// Environment variable with the instant from which its clock runs faster.
const EPOCH: &str = "CRABTALK_E2E_EPOCH";

/// At this rate a day takes some minutes, an hour of tasks some seconds.
const RATE: u32 = 100;

/// A team of one agent of the daemon, D2, without timeouts.
pub(super) const ONE: &str =
    "[times]\nbootstrap_secs = 6000\nreflection_secs = 3600000\nsilent_secs = 60000\n[agent.D2]\n";

/// The home of a daemon with D2, which uses this model.
pub(super) fn of_one(speaker: &Speaker) -> TestEnv {
    let env = TestEnv::new();
    env.config(&speaker.config());
    env.agent("d2", "description: one of a team");
    env
}

pub(crate) struct Team<'a> {
    env: &'a TestEnv,
    epoch: u64,
    child: Option<Child>,
    /// Whether NEXUS finds `crabtalk` to start a daemon.
    pub(crate) finds_program: bool,
}

fn places(home: PathBuf) -> Places {
    let user_home = home.parent().expect("a home lies in one").to_owned();
    Places {
        home,
        user_home,
        guardian: GuardianCommand::new(CRABTALK),
    }
}

/// The process that is killed; as a test it does nothing.
#[tokio::test]
async fn serve_nexus() {
    let Some(home) = std::env::var_os(HOME) else {
        return;
    };
    let places = places(home.into());
    let epoch = std::env::var(EPOCH).unwrap().parse().unwrap();
    let clock = Clock::fast(epoch, RATE);
    let served = start::run(&places, clock, || {}, std::future::pending()).await;
    panic!("NEXUS ended: {served:?}");
}

impl<'a> Team<'a> {
    /// A team that was not started.
    pub(crate) fn new(env: &'a TestEnv, config: &str) -> Self {
        let root = env.work.join("team");
        env.write(
            ".crabtalk/config/nexus.toml",
            &format!("root = {root:?}\n{config}"),
        );
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let team = Self {
            env,
            epoch: u64::try_from(now.as_millis()).unwrap(),
            child: None,
            finds_program: false,
        };
        let files = crabtalk_nexus::files::Files::new(&team.places().team().unwrap());
        let made = files.init().unwrap();
        files.commit(&made, "begin").unwrap();
        team
    }

    pub(crate) fn places(&self) -> Places {
        places(self.env.home.clone())
    }

    pub(crate) async fn start(&mut self) {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.env.home.join("nexus.log"))
            .unwrap();
        let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
        if self.finds_program {
            let program = std::path::Path::new(CRABTALK).parent().unwrap().display();
            let path = std::env::var("PATH").unwrap();
            command
                .env("PATH", format!("{program}:{path}"))
                .env("HOME", &self.env.user_home);
        }
        let child = command
            .args(["nexus::supervised::serve_nexus", "--exact", "--nocapture"])
            .env(HOME, &self.env.home)
            .env(EPOCH, self.epoch.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let state = self.places().state();
        eventually("NEXUS answers", async || {
            let said = control::say(&state, &Command::Status).await;
            said.ok().flatten()
        })
        .await;
    }

    /// Sends SIGKILL.
    pub(crate) async fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().await.unwrap();
    }

    pub(crate) async fn say(&self, command: Command) -> Answer {
        let said = control::say(&self.places().state(), &command).await;
        said.unwrap_or_else(|error| panic!("{error}: {}", self.log()))
            .unwrap_or_else(|| panic!("NEXUS is gone: {}", self.log()))
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.env.home.join("nexus.log")).unwrap_or_default()
    }

    pub(crate) async fn tasks(&self) -> Vec<(u64, Task)> {
        let Answer::Tasks { tasks } = self.say(Command::Tasks).await else {
            panic!("tasks");
        };
        tasks
    }
}
