//! What NEXUS costs while its agents have nothing to do, and how soon it answers a
//! bell.
//!
//! The agents are in a tmux of their own, which are the ones that have to be
//! watched: one of the daemon without work is on a connection that all share.

use crate::bench::server::ModelServer;
use crate::bench::stats::Row;
use anyhow::{Context, bail, ensure};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Agents without work.
const AGENTS: usize = 50;

/// Bells, one after the other.
const BELLS: usize = 40;

/// Looks at the processor, and how long each is.
const LOOKS: usize = 5;
const LOOK: Duration = Duration::from_secs(20);

/// How long all may take to come up, and each bell: nothing is measured by it.
const DEADLINE: Duration = Duration::from_secs(600);

/// Between two looks whether something came.
const PAUSE: Duration = Duration::from_millis(20);

/// Ticks in a second of `/proc/PID/stat`: always these on Linux.
const TICKS: f64 = 100.0;

const SCRIPT: &str = include_str!("nexus.sh");

const KIND: &str = r#"
[kind.bench.ready]
shows = '^>'
settle_ms = 50

[[kind.bench.prompts]]
tool = "bash"
ask = '^Allow this command\?$'
choice = '^\* 1\. Yes$'
below = 1
subject = '^  \$ (.+)$'
allow = ["1"]
deny = ["<Escape>"]

[kind.bench.transcript]
form = "pi"
files = "{home}/*.jsonl"
"#;

/// A NEXUS with its tmux; both end when it is dropped.
struct Nexus {
    folder: PathBuf,
    program: PathBuf,
    child: Option<Child>,
}

impl Nexus {
    fn start(server: &ModelServer) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("nexus")
            .tempdir_in(&server.room)?
            .keep();
        let program = server.program.with_file_name("crabtalk-nexus");
        ensure!(program.exists(), "there is no {}", program.display());
        let at = |name: &str| folder.join(name);
        for name in ["home/config", "agents", "team"] {
            fs::create_dir_all(at(name))?;
        }
        fs::write(at("agent.sh"), SCRIPT)?;
        let mut config = format!(
            "root = {:?}\n[rules]\nallow = [\"bash(echo well)\"]\n[tmux]\nsocket = {:?}\n\
             [kind.bench]\ncommand = [\"sh\", {:?}]\n{KIND}",
            at("team"),
            at("tmux"),
            at("agent.sh"),
        );
        for number in 1..=AGENTS {
            let agents = at("agents");
            write!(
                config,
                "[agent.A{number}]\nkind = \"bench\"\n[agent.A{number}.env]\nHOME = {agents:?}\n\
                 BENCH_NAME = \"A{number}\"\nBENCH_FOLDER = {agents:?}\n"
            )?;
        }
        fs::write(at("home/config/nexus.toml"), config)?;
        let mut nexus = Self {
            folder,
            program,
            child: None,
        };
        nexus.says(&["init"])?;
        let mut run = nexus.command(&["run", "--lines"]);
        nexus.child = Some(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        nexus.until("agents without work", || {
            let status = nexus.says(&["status"]).unwrap_or_default();
            status.matches(" IDLE").count() == AGENTS
        })?;
        Ok(nexus)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("HOME", &self.folder)
            .env("CRABTALK_HOME", self.folder.join("home"))
            .env_remove("TMUX")
            .stdin(Stdio::null());
        command
    }

    fn says(&self, words: &[&str]) -> anyhow::Result<String> {
        let said = self.command(words).output()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let error = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "{words:?}: {text}{error}");
        Ok(text)
    }

    fn until(&self, what: &str, is: impl Fn() -> bool) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !is() {
            if begin.elapsed() > DEADLINE {
                bail!("no {what}: {}", self.says(&["status"])?);
            }
            sleep(PAUSE);
        }
        Ok(())
    }

    fn tmux(&self, words: &[&str]) -> anyhow::Result<String> {
        let socket = self.folder.join("tmux");
        let mut tmux = Command::new("tmux");
        let said = tmux.arg("-S").arg(socket).args(words).output();
        let said = said.context("this bench needs tmux")?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    /// Time on processors so far, in seconds: of NEXUS with what it started, and
    /// of tmux.
    fn used(&self) -> anyhow::Result<(f64, f64)> {
        let nexus = self.child.as_ref().context("it runs")?.id();
        let server = self.tmux(&["display-message", "-p", "#{pid}"])?;
        let mut own = seconds(nexus)?;
        for child in children(nexus) {
            // One that ended meanwhile is in its parent's time.
            own += seconds(child).unwrap_or_default();
        }
        Ok((own, seconds(server.parse()?)?))
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = self.tmux(&["kill-server"]);
    }
}

/// Of a process, with those of its children that it waited for.
fn seconds(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("a strange stat")?;
    let ticks = rest.split(' ').skip(11).take(4);
    let ticks: f64 = ticks.filter_map(|word| word.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let tasks = tasks.flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids = |list: String| -> Vec<u32> {
        let words = list.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    lists.flat_map(pids).collect()
}

fn times(path: &Path) -> Vec<f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let nanos = text.lines().filter_map(|line| line.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e6).collect()
}

pub(super) fn idle_and_bell(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let nexus = Nexus::start(server)?;
    // What came of their start is over.
    sleep(LOOK);
    let (mut own, mut tmux) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let (before, begin) = (nexus.used()?, Instant::now());
        sleep(LOOK);
        let (after, took) = (nexus.used()?, begin.elapsed().as_secs_f64());
        own.push((after.0 - before.0) / took * 100.0);
        tmux.push((after.1 - before.1) / took * 100.0);
    }
    let path = nexus.folder.join("agents/A1.times");
    for bell in 1..=BELLS {
        nexus.says(&["task", "add", &format!("@A1 [T{bell}]: prompt")])?;
        nexus.until("answer to a bell", || times(&path).len() == bell)?;
    }
    Ok(vec![
        Row::at_most(
            format!("NEXUS, {AGENTS} idle agents in terminals"),
            "% of a core",
            1.0,
            own,
        ),
        Row::beside(
            format!("tmux itself, with the windows of {AGENTS} idle agents"),
            "% of a core",
            tmux,
        ),
        Row::at_most(
            "NEXUS, from a bell to its answer's arrival at the agent",
            "ms",
            100.0,
            times(&path),
        ),
    ])
}
