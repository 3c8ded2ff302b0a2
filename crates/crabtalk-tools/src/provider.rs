//! The operating-system tools as one provider.

use crate::bash::{BashArguments, CommandWatch, Order, Probe, Shell, Shelves, Workplace};
use crate::file_work::FileWork;
use crate::files::{Change, Closed, Intent, ReadArguments, Resolver, is_below, read};
use crate::specs;
use crabtalk_domain::tool::{
    Invocation, Preview, Reach, ShellCommand, Subject, ToolOutput, ToolProvider, ToolSpec,
};
use crabtalk_domain::{BoxFuture, ConversationKey, Sandbox};
use crabtalk_guardian::{
    Children, Guardian, GuardianCommand, Places, SandboxConfig, SandboxPolicy, Walls,
};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Time a command gets unless the call or the configuration says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest time a call may ask for: a build, not a service.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of output a model reads: a few thousand tokens.
const DEFAULT_OUTPUT_BYTES: usize = 30_000;

/// How long walls that are not whole are believed; finding out again takes a
/// few milliseconds.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Locks that keep parallel edits of one file from losing each other; two
/// files may share one, which only costs a moment.
const EDIT_LOCKS: usize = 64;

/// The files and folders in the closed home that are open to a call.
pub type OpenPaths = Arc<dyn Fn(&Invocation) -> Vec<PathBuf> + Send + Sync>;

/// What the tools need to know of the world.
#[derive(Clone)]
pub struct OsToolsConfig {
    /// Starts a guardian.
    pub guardian: GuardianCommand,
    /// `$CRABTALK_HOME`, closed to the tools (GATE-3).
    pub home: PathBuf,
    /// Where whole outputs of commands go, a folder per conversation.
    pub output_dir: PathBuf,
    /// What children get: [`child_environment`](crabtalk_guardian::child_environment).
    pub environment: Vec<(OsString, OsString)>,
    /// Time a command gets unless the call says otherwise.
    pub timeout: Duration,
    /// Longest time a call may ask for.
    pub max_timeout: Duration,
    /// Bytes of a command's output that a model reads.
    pub output_bytes: usize,
    /// What of the closed home may be read, beside the conversation's own
    /// outputs: the skills in scope.
    pub readable: OpenPaths,
    /// What of the closed home the file tools may read and change: `Crab.md`
    /// with `soul_editable`.
    pub writable: OpenPaths,
    /// The sandbox of commands.
    pub sandbox: SandboxConfig,
    /// The process's register of children.
    pub children: Children,
    /// How many files a command may have open at first; `None` leaves it what
    /// this process has. Below this process's, which may need far more.
    pub open_files: Option<u64>,
    /// Told when commands run outside the sandbox.
    pub watch: Arc<dyn CommandWatch>,
    /// Turns at the files, shared with whatever else may wait for the same disks.
    pub files: FileWork,
}

impl OsToolsConfig {
    /// The usual limits; nothing of the home is readable, orphans are not
    /// adopted.
    pub fn new(
        guardian: GuardianCommand,
        home: impl Into<PathBuf>,
        output_dir: impl Into<PathBuf>,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        Self {
            guardian,
            home: home.into(),
            output_dir: output_dir.into(),
            environment,
            timeout: DEFAULT_TIMEOUT,
            max_timeout: MAX_TIMEOUT,
            output_bytes: DEFAULT_OUTPUT_BYTES,
            readable: Arc::new(|_| Vec::new()),
            writable: Arc::new(|_| Vec::new()),
            sandbox: SandboxConfig::default(),
            children: Children::default(),
            open_files: None,
            watch: Arc::new(()),
            files: FileWork::default(),
        }
    }
}

/// Which walls there were, and when.
struct Found {
    walls: Arc<Walls>,
    at: Instant,
}

impl Found {
    /// Whole walls stay. Others may be owed to a moment, such as one in which
    /// the machine could not start another process.
    fn is_worth_another_look(&self) -> bool {
        !self.walls.are_whole() && self.at.elapsed() > LOOK_AGAIN
    }
}

/// `bash`, `read`, `edit` and `write`.
pub struct OsTools {
    config: OsToolsConfig,
    specs: Vec<Arc<ToolSpec>>,
    shell: Shell,
    user_home: Option<PathBuf>,
    programs: Vec<PathBuf>,
    files: FileWork,
    edits: Arc<[std::sync::Mutex<()>; EDIT_LOCKS]>,
    /// Swapped whole when the owner changes it.
    sandbox: std::sync::RwLock<Arc<SandboxConfig>>,
    /// What was found out of this machine under that configuration.
    walls: std::sync::Mutex<Arc<OnceCell<Found>>>,
}

impl OsTools {
    /// The tools; nothing is started until one is called.
    pub fn new(config: OsToolsConfig) -> Self {
        let variable = |name: &str| {
            config
                .environment
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, value)| value.as_os_str())
        };
        let user_home = variable("HOME")
            .map(PathBuf::from)
            .filter(|h| h.is_absolute());
        let programs: Vec<PathBuf> =
            std::env::split_paths(variable("PATH").unwrap_or(OsStr::new("")))
                .filter(|p| p.is_absolute())
                .collect();
        let shell = Shell::new(
            Guardian::new(config.guardian.clone(), config.children.clone()),
            config.environment.clone(),
            config.output_bytes,
            config.open_files,
            Shelves::new(config.output_dir.clone()),
            Arc::clone(&config.watch),
        );
        Self {
            specs: specs::all(config.timeout, config.max_timeout),
            shell,
            user_home,
            programs,
            files: config.files.clone(),
            edits: Arc::new(std::array::from_fn(|_| std::sync::Mutex::new(()))),
            sandbox: std::sync::RwLock::new(Arc::new(config.sandbox.clone())),
            walls: std::sync::Mutex::default(),
            config,
        }
    }

    /// Changes the sandbox of the commands that start from now on.
    pub fn set_sandbox(&self, sandbox: SandboxConfig) {
        let mut now = self
            .sandbox
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = Arc::new(sandbox);
        drop(now);
        // Whoever changes the configuration may have changed the system.
        let mut walls = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        *walls = Arc::default();
    }

    /// What holds here around a sandboxed command. Found out when it is first
    /// asked, by running nothing in a sandbox.
    pub async fn walls(&self) -> Arc<Walls> {
        let walls = {
            let mut now = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
            if now.get().is_some_and(Found::is_worth_another_look) {
                *now = Arc::default();
            }
            Arc::clone(&now)
        };
        let found = walls.get_or_init(async || {
            let probe = Probe {
                shell: &self.shell,
                config: self.sandbox(),
                home: &self.config.home,
                programs: &self.programs,
            };
            Found {
                walls: Arc::new(probe.walls().await),
                at: Instant::now(),
            }
        });
        Arc::clone(&found.await.walls)
    }

    fn sandbox(&self) -> Arc<SandboxConfig> {
        let now = self.sandbox.read();
        Arc::clone(&now.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Ends every command and waits until nothing of them is left. Calls
    /// after it fail.
    pub async fn shut_down(&self) {
        self.shell.shut_down().await;
    }

    /// The folder of a conversation's whole outputs.
    pub fn outputs_of(&self, key: &ConversationKey) -> PathBuf {
        outputs_of(&self.config.output_dir, key)
    }

    fn open_paths(&self, call: &Invocation) -> OpenTo {
        OpenTo {
            call: call.clone(),
            readable: Arc::clone(&self.config.readable),
            writable: Arc::clone(&self.config.writable),
            outputs: self.outputs_of(&call.key),
        }
    }

    fn readable(&self, call: &Invocation) -> Vec<PathBuf> {
        self.open_paths(call).readable()
    }

    /// The judged path of a file tool's call.
    async fn path(
        &self,
        call: &Invocation,
        text: String,
        intent: Intent,
    ) -> Result<Subject, String> {
        let (cwd, user_home) = (call.cwd.clone(), self.user_home.clone());
        let (home, open) = (self.config.home.clone(), self.open_paths(call));
        self.files
            .run(&of(call), move |_| {
                let (readable, writable) = (open.readable(), open.writable());
                let resolver = Resolver {
                    cwd: &cwd,
                    user_home: user_home.as_deref(),
                };
                let closed = Closed {
                    home: &home,
                    readable: &readable,
                    writable: &writable,
                };
                let path = resolver.lead(&text)?;
                closed.check(&path, intent)?;
                Ok(Subject::Path {
                    path,
                    write: intent != Intent::Read,
                })
            })
            .await
            .map_err(|e: Failure| e.0)
    }

    /// Runs the command that was judged; the call's arguments say no more
    /// than how long it may take.
    async fn bash(&self, call: &Invocation, command: &ShellCommand) -> Result<ToolOutput, Failure> {
        let arguments: BashArguments = arguments(call)?;
        let timeout = arguments
            .timeout_ms
            .map_or(self.config.timeout, Duration::from_millis);
        let cwd = call.cwd.clone();
        let cwd = self
            .files
            .run(&of(call), move |_| {
                Ok::<_, Failure>(Workplace::enter(&cwd)?)
            })
            .await?;
        let sandbox = self.policy(call, &cwd).await?;
        Ok(self
            .shell
            .run(Order {
                key: Some(call.key.clone()),
                command: command.text.clone(),
                environment: command.environment.clone(),
                cwd,
                timeout: timeout.min(self.config.max_timeout),
                sandbox,
                outputs: self.outputs_of(&call.key),
                prefix: format!("bash-{}-", call.run),
            })
            .await)
    }

    /// What the command may reach, if it is to run in the sandbox.
    async fn policy(
        &self,
        call: &Invocation,
        cwd: &Workplace,
    ) -> Result<Option<SandboxPolicy>, Failure> {
        let config = self.sandbox();
        if call.agent.sandbox == Sandbox::Off && !config.always {
            return Ok(None);
        }
        let walls = self.walls().await;
        if call.agent.sandbox == Sandbox::Strict
            && let Some(why) = walls.refuse()
        {
            return Err(Failure(why));
        }
        let cwd = cwd.spot().clone();
        let (home, open) = (self.config.home.clone(), self.open_paths(call));
        let (user_home, programs) = (self.user_home.clone(), self.programs.clone());
        self.files
            .run(&of(call), move |_| {
                let readable = open.readable();
                let places = Places {
                    config: &config,
                    cwd: &cwd,
                    home: &home,
                    user_home: user_home.as_deref(),
                    programs: &programs,
                    readable: &readable,
                    namespaces: &walls.namespaces,
                };
                Ok(Some(places.policy()?))
            })
            .await
    }

    /// Says what makes no sense on a path that may be touched by now: before,
    /// that would tell what lies there.
    async fn sensible(
        &self,
        call: &Invocation,
        text: String,
        intent: Intent,
        judged: &Path,
    ) -> Result<(), Failure> {
        let (cwd, user_home) = (call.cwd.clone(), self.user_home.clone());
        let judged = judged.to_path_buf();
        self.files
            .run(&of(call), move |_| {
                let resolver = Resolver {
                    cwd: &cwd,
                    user_home: user_home.as_deref(),
                };
                if resolver.resolve(&text, intent)? == judged {
                    Ok(())
                } else {
                    Err(crate::files::Error::Changed(judged).into())
                }
            })
            .await
    }

    async fn read(&self, call: &Invocation, path: &Path) -> Result<ToolOutput, Failure> {
        let (arguments, path): (ReadArguments, _) = (arguments(call)?, path.to_path_buf());
        let text = arguments.path.clone();
        self.sensible(call, text, Intent::Read, &path).await?;
        self.files
            .run(&of(call), move |cancelled| {
                Ok(read(&path, &arguments, cancelled)?)
            })
            .await
    }

    async fn shown(&self, call: &Invocation, path: &Path) -> Result<Preview, Failure> {
        let (change, path) = (change(call)?, path.to_path_buf());
        let (text, intent) = change.aim();
        self.sensible(call, text, intent, &path).await?;
        self.files
            .run(&of(call), move |_| Ok(change.preview(&path)?))
            .await
    }

    async fn change(
        &self,
        call: &Invocation,
        path: &Path,
        shown: Option<&Preview>,
    ) -> Result<ToolOutput, Failure> {
        let (change, path) = (change(call)?, path.to_path_buf());
        let (text, intent) = change.aim();
        self.sensible(call, text, intent, &path).await?;
        let (locks, shown) = (Arc::clone(&self.edits), shown.cloned());
        self.files
            .run(&of(call), move |cancelled| {
                let _one_at_a_time = lock(&locks, &path);
                not_if(cancelled)?;
                Ok(ToolOutput::ok(change.make(&path, shown.as_ref())?))
            })
            .await
    }

    async fn called(
        &self,
        call: &Invocation,
        subject: &Subject,
        shown: Option<&Preview>,
    ) -> ToolOutput {
        let done = match (call.name.as_str(), subject) {
            ("bash", Subject::Command(command)) => self.bash(call, command).await,
            ("read", Subject::Path { path, write: false }) => self.read(call, path).await,
            ("edit" | "write", Subject::Path { path, write: true }) => {
                self.change(call, path, shown).await
            }
            (other, _) => Err(Failure(format!(
                "{other} was not judged on what it would touch"
            ))),
        };
        done.unwrap_or_else(|Failure(why)| ToolOutput::error(why))
    }
}

/// What is open to a call although the home is closed. Finding out may wait for
/// a disk.
struct OpenTo {
    call: Invocation,
    readable: OpenPaths,
    writable: OpenPaths,
    outputs: PathBuf,
}

impl OpenTo {
    fn readable(&self) -> Vec<PathBuf> {
        let mut readable = (self.readable)(&self.call);
        readable.push(self.outputs.clone());
        readable
    }

    fn writable(&self) -> Vec<PathBuf> {
        (self.writable)(&self.call)
    }
}

/// Whose work on files a call is.
fn of(call: &Invocation) -> String {
    call.key.to_string()
}

/// The folder of a conversation's whole outputs. A hash, since senders are any
/// text of any length and must not share one.
pub fn outputs_of(outputs: &Path, key: &ConversationKey) -> PathBuf {
    let mut hash = Sha256::new();
    // Agents' names are unique ignoring case (CONV-2), and hold no NUL.
    hash.update(key.agent.as_str().to_ascii_lowercase());
    hash.update([0]);
    hash.update(key.sender.as_str());
    let name: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    outputs.join(name)
}

impl ToolProvider for OsTools {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.specs.clone()
    }

    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(async move {
            let text = |e: Failure| e.0;
            match call.name.as_str() {
                "bash" => {
                    let arguments: BashArguments = arguments(call).map_err(text)?;
                    arguments.check()?;
                    Ok(Subject::Command(arguments.command.into()))
                }
                "read" => {
                    let arguments: ReadArguments = arguments(call).map_err(text)?;
                    self.path(call, arguments.path, Intent::Read).await
                }
                "edit" | "write" => {
                    let (path, intent) = change(call).map_err(text)?.aim();
                    self.path(call, path, intent).await
                }
                other => Err(format!("there is no tool {other}")),
            }
        })
    }

    fn is_own(&self, call: &Invocation, subject: &Subject) -> bool {
        match subject {
            Subject::Path { path, write: false } => {
                self.readable(call).iter().any(|open| is_below(path, open))
            }
            Subject::Path { write: true, .. } | Subject::Command(_) | Subject::Other => false,
        }
    }

    fn reach(&self, call: &Invocation, path: &Path) -> Reach {
        let home = &self.config.home;
        if is_below(path, home) {
            let is_in = |open: &Vec<PathBuf>| open.iter().any(|open| is_below(path, open));
            return match () {
                () if is_in(&(self.config.writable)(call)) => Reach::Open,
                () if is_in(&self.readable(call)) => Reach::Readable,
                () => Reach::Closed,
            };
        }
        let home = home.canonicalize().unwrap_or_else(|_| home.clone());
        if home.starts_with(path) {
            Reach::Above
        } else {
            Reach::Open
        }
    }

    fn preview<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
    ) -> BoxFuture<'a, Result<Option<Preview>, String>> {
        Box::pin(async move {
            match (call.name.as_str(), subject) {
                ("edit" | "write", Subject::Path { path, write: true }) => {
                    let shown = self.shown(call, path).await;
                    shown.map(Some).map_err(|Failure(why)| why)
                }
                (_, Subject::Path { .. } | Subject::Command(_) | Subject::Other) => Ok(None),
            }
        })
    }

    fn call<'a>(&'a self, call: &'a Invocation, subject: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.called(call, subject, None))
    }

    fn call_as_shown<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        shown: &'a Preview,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.called(call, subject, Some(shown)))
    }
}

/// What a call of `edit` or `write` wants to change.
fn change(call: &Invocation) -> Result<Change, Failure> {
    if call.name == "edit" {
        Ok(Change::Edit(arguments(call)?))
    } else {
        Ok(Change::Write(arguments(call)?))
    }
}

/// Why a call came to nothing, as the model reads it.
struct Failure(String);

impl From<crate::files::Error> for Failure {
    fn from(error: crate::files::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self(why)
    }
}

fn arguments<T: DeserializeOwned>(call: &Invocation) -> Result<T, Failure> {
    T::deserialize(&call.arguments)
        .map_err(|e| Failure(format!("the arguments of {} are wrong: {e}", call.name)))
}

fn lock<'a>(
    locks: &'a [std::sync::Mutex<()>; EDIT_LOCKS],
    path: &Path,
) -> std::sync::MutexGuard<'a, ()> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let at = usize::try_from(hasher.finish() % EDIT_LOCKS as u64).expect("below the count");
    // It guards no data, so that a panic leaves nothing half-done behind.
    locks[at]
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A change that was cancelled while it waited does not happen.
fn not_if(cancelled: &AtomicBool) -> Result<(), Failure> {
    if cancelled.load(Ordering::Relaxed) {
        Err(Failure("cancelled".into()))
    } else {
        Ok(())
    }
}
