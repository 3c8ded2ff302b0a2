//! A separate home, the daemon on it, and figures of the kernel.

use super::client::Client;
use super::server::{ModelServer, Plan};
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a daemon may take to start.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Between two looks for the socket while nothing appears in the home.
const LOOK: Duration = Duration::from_millis(10);

/// Unit of times in `/proc/PID/stat`: always 100 a second on Linux.
const TICK: Duration = Duration::from_millis(10);

/// A home that a daemon has not run on yet. It stays until everything has been
/// measured: file systems are slow to make files for a while after many were
/// deleted.
pub(crate) struct Home {
    dir: PathBuf,
    program: PathBuf,
}

impl Home {
    /// A home with one agent and one model per plan.
    pub(crate) fn new(
        server: &ModelServer,
        sync: &str,
        agents: &[(&str, Plan)],
    ) -> anyhow::Result<Self> {
        let home = Self {
            dir: tempfile::Builder::new()
                .prefix("home")
                .tempdir_in(&server.room)?
                .keep(),
            program: server.program.clone(),
        };
        let mut config = format!("[storage]\nsync = \"{sync}\"\n[runs]\ndetect = false\n");
        fs::create_dir_all(home.path().join("config/agents"))?;
        for (agent, plan) in agents {
            home.agent(agent)?;
            write!(
                config,
                "[provider.{agent}]\nkind = \"openai\"\nbase_url = \"http://{}{}/v1\"\n\
                 api_key = \"x\"\nmodels = [\"{agent}\"]\n",
                server.address,
                plan.path()
            )?;
        }
        fs::write(home.path().join("config/config.toml"), config)?;
        Ok(home)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Writes an agent whose model has its name.
    pub(crate) fn agent(&self, name: &str) -> anyhow::Result<()> {
        let file = self.path().join(format!("config/agents/{name}.md"));
        let front = format!("model: {name}\ncompact_threshold: none");
        Ok(fs::write(
            file,
            format!("---\n{front}\n---\nYou are brief.\n"),
        )?)
    }

    /// Adds to the configuration.
    pub(crate) fn configure(&self, more: &str) -> anyhow::Result<()> {
        let path = self.path().join("config/config.toml");
        let config = fs::read_to_string(&path)?;
        Ok(fs::write(path, config + more)?)
    }

    /// Writes a conversation's log.
    pub(crate) fn conversation(
        &self,
        agent: &str,
        sender: &str,
        lines: &str,
    ) -> anyhow::Result<PathBuf> {
        let sessions = self.path().join("sessions");
        fs::create_dir_all(&sessions)?;
        let path = sessions.join(format!("{agent}_{sender}_1.jsonl"));
        let head = format!(
            "{{\"agent\":\"{agent}\",\"created_by\":\"{sender}\",\
             \"created_at\":\"2026-01-01T00:00:00Z\",\"title\":\"\",\"uptime_secs\":0}}\n"
        );
        fs::write(&path, head + lines)?;
        Ok(path)
    }

    /// Starts the daemon and waits for its first Pong.
    pub(crate) fn start(&self) -> anyhow::Result<Daemon> {
        let socket = self.path().join("daemon.sock");
        let mut command = Command::new(&self.program);
        command
            .args(["daemon", "run"])
            .env("CRABTALK_HOME", self.path())
            .env("CRABTALK_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let appears = Appears::in_folder(self.path())?;
        let begun = Instant::now();
        let mut child = command.spawn().context("cannot start the daemon")?;
        loop {
            if let Ok(mut client) = Client::connect(&socket) {
                client.ping()?;
                return Ok(Daemon {
                    child,
                    socket,
                    pong: begun.elapsed(),
                });
            }
            if let Some(status) = child.try_wait()? {
                bail!("the daemon ended at once: {status}");
            }
            ensure!(
                begun.elapsed() < START_DEADLINE,
                "the daemon does not start"
            );
            appears.wait()?;
        }
    }
}

/// Reports new files in a folder: polling would take the processor from the
/// measured program.
#[cfg(target_os = "linux")]
struct Appears(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Appears {
    fn in_folder(folder: &Path) -> std::io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&watch, folder, WatchFlags::MOVED_TO)?;
        Ok(Self(watch))
    }

    /// Returns when something has appeared, or after a while.
    fn wait(&self) -> anyhow::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let most = LOOK.try_into()?;
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&most))?;
        // Any new file may be the socket.
        let _ = rustix::io::read(&self.0, &mut [0; 4096]);
        Ok(())
    }
}

/// Where the system does not tell, time passes.
#[cfg(not(target_os = "linux"))]
struct Appears;

#[cfg(not(target_os = "linux"))]
impl Appears {
    fn in_folder(_: &Path) -> std::io::Result<Self> {
        Ok(Self)
    }

    fn wait(&self) -> anyhow::Result<()> {
        std::thread::sleep(LOOK);
        Ok(())
    }
}

/// The daemon's binary, which is built beside this one.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("crabtalk");
    ensure!(path.exists(), "there is no {}", path.display());
    Ok(path)
}

/// A daemon that answers; killed when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    socket: PathBuf,
    /// From its start to its first Pong.
    pub(crate) pong: Duration,
}

impl Daemon {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(&self.socket)?)
    }

    fn proc(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.child.id())
    }

    fn status_mib(&self, field: &str) -> anyhow::Result<f64> {
        let text = fs::read_to_string(self.proc("status"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok());
        let kib: f64 = kib.with_context(|| format!("no {field} in status"))?;
        Ok(kib / 1024.0)
    }

    /// Resident memory now.
    pub(crate) fn rss_mib(&self) -> anyhow::Result<f64> {
        self.status_mib("VmRSS")
    }

    /// Of it what is the daemon's own, and not mapped from a file.
    pub(crate) fn own_mib(&self) -> anyhow::Result<f64> {
        self.status_mib("RssAnon")
    }

    /// The most since the start or [`Daemon::forget_peak`].
    pub(crate) fn peak_mib(&self) -> anyhow::Result<f64> {
        self.status_mib("VmHWM")
    }

    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        Ok(fs::write(self.proc("clear_refs"), "5")?)
    }

    /// Time on processors so far, of all its threads.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu_of(self.child.id())
    }

    /// Ends it as a supervisor would, and waits.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id())?;
        kill_process(Pid::from_raw(pid).context("a strange pid")?, Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Time on processors so far, of all threads of a process.
pub(crate) fn cpu_of(pid: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("a strange stat")?;
    let mut words = rest.split(' ').skip(11);
    let mut ticks = || words.next().and_then(|word| word.parse::<u32>().ok());
    let (user, system) = (ticks().context("no utime")?, ticks().context("no stime")?);
    Ok(TICK * (user + system))
}
