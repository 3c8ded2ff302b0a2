//! The operating-system tools as a tool provider.

mod config;
mod files;
mod walls;

pub use config::{OpenPaths, OsToolsConfig};

use crate::bash::{BashArguments, Order, Probe, Shell, Shelves, Tail, Workplace, told};
use crate::changes::{Changes, How, RunChanges, UndoRefused, Undone};
use crate::file_work::FileWork;
use crate::files::{GlobArguments, GrepArguments, Intent, ReadArguments, Resolver, is_below};
use crate::outputs::{caches_of, outputs_of};
use crate::specs;
use crabtalk_domain::tool::{
    Caller, CommandAccess, Invocation, Preview, ShellCommand, Subject, ToolOutput, ToolProvider,
    ToolSpec,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use crabtalk_guardian::{Guardian, PolicyBuilder, SandboxConfig, SandboxPolicy, Walls};
use files::{EditLocks, change};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use walls::SandboxOf;

/// `bash`, `read`, `grep`, `glob`, `edit` and `write`.
pub struct OsTools {
    config: OsToolsConfig,
    specs: Vec<Arc<ToolSpec>>,
    shell: Shell,
    user_home: Option<PathBuf>,
    files: FileWork,
    edits: Arc<EditLocks>,
    changes: Changes,
    sandbox: SandboxOf,
}

impl OsTools {
    /// Creates the tools; nothing is started until a call.
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
        let shell = Shell::new(
            Guardian::new(config.guardian.clone(), config.children.clone()),
            config.environment.clone(),
            config.output_bytes,
            config.open_files,
            Shelves::new(config.output_dir.clone()),
        );
        let changes = Changes::new(
            Arc::clone(&config.changes),
            &config.home,
            user_home.clone(),
            config.environment.clone(),
            config.children.clone(),
        );
        Self {
            changes,
            specs: specs::all(config.timeout, config.max_timeout),
            shell,
            user_home,
            files: config.files.clone(),
            edits: Arc::default(),
            sandbox: SandboxOf::new(config.sandbox.clone()),
            config,
        }
    }

    /// Changes the sandbox of future commands.
    pub fn set_sandbox(&self, sandbox: SandboxConfig) {
        self.sandbox.set(sandbox);
    }

    /// The walls around a sandboxed command on this machine. The first call runs an empty
    /// command to find them.
    pub async fn walls(&self) -> Arc<Walls> {
        self.sandbox
            .walls(|config| Probe {
                shell: &self.shell,
                config,
                home: &self.config.home,
                environment: &self.config.environment,
            })
            .await
    }

    /// Whether `PATH` resolves this program to a path that sandboxed commands in a folder may
    /// have written to.
    pub fn is_replaceable(&self, program: &str, cwd: &Path) -> bool {
        crate::bash::is_replaceable(&self.config.environment, program, cwd)
    }

    /// Ends every command and waits for all their processes. Later calls
    /// fail.
    pub async fn shut_down(&self) {
        self.shell.shut_down().await;
    }

    /// Stores bytes next to a conversation's output files, where its `read` tool may
    /// open them.
    ///
    /// # Errors
    /// The failure and the folder.
    pub async fn keep_output(
        &self,
        key: &ConversationKey,
        prefix: &'static str,
        bytes: Vec<u8>,
    ) -> Result<PathBuf, String> {
        let shelves = Arc::clone(self.shell.shelves());
        let folder = self.outputs_of(key);
        let kept = tokio::task::spawn_blocking(move || shelves.keep(&folder, prefix, &bytes));
        kept.await.map_err(|e| e.to_string())?
    }

    /// The folder of a conversation's output files.
    pub fn outputs_of(&self, key: &ConversationKey) -> PathBuf {
        outputs_of(&self.config.output_dir, key)
    }

    /// The file changes of one run of a conversation, or of the last `most` runs, newest
    /// first.
    ///
    /// # Errors
    /// The run does not exist, or its records cannot be read.
    pub async fn changes(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
        most: usize,
        diffs: bool,
    ) -> Result<Vec<RunChanges>, UndoRefused> {
        let (changes, of) = (self.changes.clone(), key.clone());
        let work = move |_: &_| changes.list(&of, run, most, diffs);
        self.files.run(&key.to_string(), work).await
    }

    /// Undoes one run, or the last run with changes, or reports what an undo would
    /// do. Nothing is undone if a file cannot be undone, unless `partly`.
    ///
    /// # Errors
    /// The run does not exist, or its records cannot be read or written.
    pub async fn undo(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
        do_it: bool,
        partly: bool,
    ) -> Result<Undone, UndoRefused> {
        let (changes, of) = (self.changes.clone(), key.clone());
        let locks = Arc::clone(&self.edits);
        let how = How { do_it, partly };
        let work = move |_: &_| changes.undo(&of, run, how, |path| locks.lock(path));
        self.files.run(&key.to_string(), work).await
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

    /// The command of a call, and the requested access.
    async fn command(
        &self,
        call: &Invocation,
        arguments: BashArguments,
    ) -> Result<Subject, String> {
        let (cwd, user_home) = (call.cwd.clone(), self.user_home.clone());
        let home = self.config.home.clone();
        self.files
            .run(&of(call), move |_| {
                let resolver = Resolver {
                    cwd: &cwd,
                    user_home: user_home.as_deref(),
                };
                let access = arguments.access(&resolver, &home)?;
                let text = arguments.command;
                Ok(Subject::Command(ShellCommand { text, access }))
            })
            .await
            .map_err(|Failure(why)| why)
    }

    /// Runs the judged command; of the call's arguments only the timeout is
    /// used.
    async fn bash(
        &self,
        call: &Invocation,
        command: &ShellCommand,
        caller: &dyn Caller,
    ) -> Result<ToolOutput, Failure> {
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
        let sandbox = self.policy(call, &cwd, &command.access).await?;
        let (said, heard) = watch::channel(Tail::default());
        let run = self.shell.run(Order {
            said: Some(said),
            command: command.text.clone(),
            environment: Vec::new(),
            cwd,
            timeout: timeout.min(self.config.max_timeout),
            sandbox,
            around: Some(self.changes.around(call, &call.cwd, &command.text)),
            outputs: self.outputs_of(&call.key),
            prefix: format!("bash-{}-", call.run),
        });
        Ok(told(run, heard, caller).await)
    }

    /// The sandbox policy of a command; `None` outside the sandbox.
    async fn policy(
        &self,
        call: &Invocation,
        cwd: &Workplace,
        access: &CommandAccess,
    ) -> Result<Option<SandboxPolicy>, Failure> {
        if access.outside {
            return Ok(None);
        }
        let config = self.sandbox.config();
        let walls = self.walls().await;
        let cwd = cwd.spot().clone();
        let (home, open) = (self.config.home.clone(), self.open_paths(call));
        let (user_home, access) = (self.user_home.clone(), access.clone());
        let environment = self.config.environment.clone();
        self.files
            .run(&of(call), move |_| {
                let readable = open.readable();
                let caches = caches_of(&home, &cwd.path);
                let builder = PolicyBuilder {
                    config: &config,
                    cwd: &cwd,
                    read_only: access.read_only,
                    write: &access.write,
                    hosts: &access.hosts,
                    home: &home,
                    user_home: user_home.as_deref(),
                    environment: &environment,
                    readable: &readable,
                    own: &[],
                    caches: Some(&caches),
                    namespaces: walls.namespaces,
                };
                Ok(Some(builder.build()?))
            })
            .await
    }

    async fn called(
        &self,
        call: &Invocation,
        subject: &Subject,
        shown: Option<&Preview>,
        caller: &dyn Caller,
    ) -> ToolOutput {
        let done = match (call.name.as_str(), subject) {
            ("bash", Subject::Command(command)) => self.bash(call, command, caller).await,
            ("read", Subject::Path { path, write: false }) => self.read(call, path).await,
            ("grep" | "glob", Subject::Path { path, write: false }) => {
                self.search(call, path).await
            }
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

/// The paths in the closed home that are open to a call. Listing them may block on a
/// disk.
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

/// Names the conversation of a call in errors.
fn of(call: &Invocation) -> String {
    call.key.to_string()
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
                    self.command(call, arguments).await
                }
                "read" => {
                    let arguments: ReadArguments = arguments(call).map_err(text)?;
                    self.path(call, arguments.path, Intent::Read).await
                }
                "grep" => {
                    let arguments: GrepArguments = arguments(call).map_err(text)?;
                    let root = arguments.path.unwrap_or_else(|| ".".into());
                    self.path(call, root, Intent::Read).await
                }
                "glob" => {
                    let arguments: GlobArguments = arguments(call).map_err(text)?;
                    let root = arguments.path.unwrap_or_else(|| ".".into());
                    self.path(call, root, Intent::Read).await
                }
                "edit" | "write" => {
                    let (path, intent) = change(call).map_err(text)?.aim();
                    self.path(call, path, intent).await
                }
                other => Err(format!("unknown tool {other}")),
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
        Box::pin(self.called(call, subject, None, &()))
    }

    fn call_as_shown<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        shown: &'a Preview,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.called(call, subject, Some(shown), &()))
    }

    fn call_for<'a>(
        &'a self,
        call: &'a Invocation,
        subject: &'a Subject,
        shown: Option<&'a Preview>,
        caller: &'a dyn Caller,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.called(call, subject, shown, caller))
    }
}

/// The error of a call, worded for the model.
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
