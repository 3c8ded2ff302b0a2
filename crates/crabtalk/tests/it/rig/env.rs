//! A separate environment for each test: home, folder, variables, daemon.

use super::ModelServer;
use super::command::{self, Output};
use super::wait::{eventually, within};
use crabtalk_client::{Client, Connection, Endpoint};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

/// Shell text that allows programs to write core files.
pub(crate) const ALLOW_CORES: &str = "ulimit -S -c \"$(ulimit -H -c)\"";

/// The prefix of a shell command that drops root's capabilities, which would allow
/// access to every process. It is empty for an ordinary user.
pub(crate) const WITHOUT_RIGHTS: &str = "$(setpriv --bounding-set=-all --inh-caps=-all \
    echo setpriv --bounding-set=-all --inh-caps=-all 2> /dev/null)";

/// The interval between two signals to a process that has not ended.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(200);

pub(crate) struct TestEnv {
    dir: TempDir,
    /// The user's home folder, with `.crabtalk` in it.
    pub(crate) user_home: PathBuf,
    pub(crate) home: PathBuf,
    /// The work folder.
    pub(crate) work: PathBuf,
    variables: Vec<(String, String)>,
}

/// A daemon in the foreground; ends when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl TestEnv {
    /// A home without a daemon and without configuration.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let env = Self {
            user_home: root.join("me"),
            home: root.join("me/.crabtalk"),
            work: root.join("me/work"),
            variables: Vec::new(),
            dir,
        };
        fs::create_dir_all(&env.work).unwrap();
        env
    }

    /// A home whose model is a scripted server.
    pub(crate) fn with_model(model: &ModelServer) -> Self {
        let env = Self::new();
        env.config(&format!(
            "model = \"scripted\"\n\n[provider.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
             api_key = \"sk-test\"\nmodels = [\"scripted\"]\n",
            model.url()
        ));
        env
    }

    /// Sets a variable for everything that is started.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("daemon.sock")
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// Conversation logs, by name.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = fs::read_dir(self.sessions())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        found.sort();
        found
    }

    pub(crate) fn config(&self, text: &str) {
        self.write(".crabtalk/config/config.toml", text);
    }

    /// Writes an agent's file.
    pub(crate) fn agent(&self, name: &str, front: &str) {
        let text = format!("---\n{front}\n---\nYou are {name}.\n");
        self.write(&format!(".crabtalk/config/agents/{name}.md"), &text);
    }

    /// Writes a file below the user's home.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.user_home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a script into the work folder.
    pub(crate) fn script(&self, name: &str, text: &str) {
        let path = self.work.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A program in this environment, without a terminal or input.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        // A separate session, so that no question reaches the terminal of the test run.
        let mut command = Command::new("setsid");
        command.arg(program);
        self.enter(&mut command);
        command
    }

    fn enter(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.user_home)
            .env("CRABTALK_HOME", &self.home)
            .env("CRABTALK_DETECT", "0")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .envs(self.variables.iter().map(|(n, v)| (n, v)))
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .kill_on_drop(true);
    }

    /// The variables as shell text, for programs that start others.
    pub(crate) fn exports(&self) -> String {
        let own = [
            ("HOME", self.user_home.display().to_string()),
            ("CRABTALK_HOME", self.home.display().to_string()),
            ("CRABTALK_DETECT", "0".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ];
        let more = self.variables.iter().map(|(n, v)| (n.as_str(), v.clone()));
        own.into_iter()
            .chain(more)
            .map(|(name, value)| format!("{name}='{value}'"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs `crabtalk` to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, None).await
    }

    /// Runs `crabtalk` to its end with this input.
    pub(crate) async fn run_with(&self, arguments: &[&str], input: Option<&str>) -> Output {
        let mut command = self.program(command::CRABTALK);
        command.args(arguments);
        command::run(command, input).await
    }

    /// Runs a shell script, in which `$CRABTALK` is the program.
    pub(crate) async fn shell(&self, script: &str) -> Output {
        let mut command = self.program("sh");
        command.args(["-c", script]);
        command.env("CRABTALK", command::CRABTALK);
        command::run(command, None).await
    }

    /// Starts the daemon and waits until it reports that it is ready.
    pub(crate) async fn daemon(&self) -> Daemon {
        // Not through `setsid`, so that signals reach the daemon itself.
        self.daemon_by(Command::new(command::CRABTALK)).await
    }

    /// Starts this program as the daemon.
    pub(crate) async fn daemon_of(&self, program: &Path) -> Daemon {
        self.daemon_by(Command::new(program)).await
    }

    /// Starts a daemon without root's capabilities that may write core files.
    pub(crate) async fn daemon_of_a_user(&self) -> Daemon {
        let script = format!("{ALLOW_CORES}; exec {WITHOUT_RIGHTS}");
        self.daemon_by(shell(&script)).await
    }

    /// Starts a daemon without user namespaces.
    pub(crate) async fn daemon_without_namespaces(&self) -> Daemon {
        let forbid = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"";
        let script = format!("exec unshare --user --map-root-user sh -c '{forbid}'");
        self.daemon_by(shell(&script)).await
    }

    /// Starts a daemon with this soft limit of open files.
    pub(crate) async fn daemon_with_open_files(&self, most: u64) -> Daemon {
        self.daemon_by(shell(&format!("ulimit -Sn {most}; exec")))
            .await
    }

    async fn daemon_by(&self, mut command: Command) -> Daemon {
        let notify = self.root().join("notify");
        let _ = fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify).unwrap();
        let log = self.root().join("daemon.err");
        self.enter(&mut command);
        command
            .args(["daemon", "run"])
            .env("NOTIFY_SOCKET", &notify)
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut said = [0; 64];
        let started = async {
            tokio::select! {
                read = ready.recv(&mut said) => read.unwrap(),
                status = child.wait() => panic!(
                    "the daemon ended at once ({status:?}): {}",
                    fs::read_to_string(&log).unwrap()
                ),
            }
        };
        let count = within("the daemon to be ready", started).await;
        assert_eq!(&said[..count], b"READY=1\n");
        Daemon { child, log }
    }

    /// A connection with Hello.
    pub(crate) async fn connect(&self) -> Connection {
        self.client().connect().await.unwrap()
    }

    fn client(&self) -> Client {
        Client::new(Endpoint::of_home(&self.home), "e2e")
    }

    /// A connection without Hello.
    pub(crate) async fn connect_silently(&self) -> crabtalk_transport::Connection {
        crabtalk_transport::connect(&self.socket()).await.unwrap()
    }
}

/// A shell that runs a script and then executes the program.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{script} \"$0\" \"$@\"");
    command.args(["-c", &script, command::CRABTALK]);
    command
}

impl Drop for TestEnv {
    /// Kills a daemon that a client started and a failed test left running.
    fn drop(&mut self) {
        let Ok(stream) = std::os::unix::net::UnixStream::connect(self.socket()) else {
            return;
        };
        if let Ok(peer) = rustix::net::sockopt::socket_peercred(&stream) {
            let _ = kill_process(peer.pid, Signal::KILL);
        }
    }
}

impl Daemon {
    pub(crate) fn pid(&self) -> Pid {
        let pid = self.child.id().expect("it was not waited for");
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Sends SIGKILL and waits for the end.
    pub(crate) async fn kill(mut self) {
        kill_process(self.pid(), Signal::KILL).unwrap();
        within("a killed daemon to end", self.child.wait())
            .await
            .unwrap();
    }

    /// Sends a fatal signal until the process ends.
    pub(crate) async fn crash(mut self, signal: Signal) -> ExitStatus {
        let pid = self.pid();
        let crashing = async {
            loop {
                // Rust's handler of stack overflows ignores the first SIGSEGV.
                kill_process(pid, signal).unwrap();
                let ended = tokio::time::timeout(BETWEEN_SIGNALS, self.child.wait());
                if let Ok(status) = ended.await {
                    return status.unwrap();
                }
            }
        };
        within("a crashed daemon to end", crashing).await
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) async fn terminate(mut self) -> ExitStatus {
        kill_process(self.pid(), Signal::TERM).unwrap();
        within("the daemon to end", self.child.wait())
            .await
            .unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the daemon said:\n{}", self.stderr());
        }
    }
}

/// Waits until a process has ended.
pub(crate) async fn gone(pid: i32) {
    eventually("a process to be gone", async || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        match stat.as_deref().ok().and_then(|s| s.rsplit_once(") ")) {
            None => Some(()),
            Some((_, state)) => state.starts_with(['Z', 'X']).then_some(()),
        }
    })
    .await;
}
