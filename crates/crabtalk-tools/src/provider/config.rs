//! Configuration of the tools.

use crate::file_work::FileWork;
use crabtalk_domain::records::ChangeJournal;
use crabtalk_domain::tool::Invocation;
use crabtalk_guardian::{Children, GuardianCommand, SandboxConfig};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Default timeout of a command.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest timeout that a call may request: long enough for a build, not for a service.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Default bytes of output shown to a model: a few thousand tokens.
const DEFAULT_OUTPUT_BYTES: usize = 30_000;

/// The files and folders in the closed home that are open to a call.
pub type OpenPaths = Arc<dyn Fn(&Invocation) -> Vec<PathBuf> + Send + Sync>;

/// Configuration of the tools.
#[derive(Clone)]
pub struct OsToolsConfig {
    /// Starts a guardian.
    pub guardian: GuardianCommand,
    /// The home, `$CRABTALK_HOME`, which is closed to the tools (GATE-3).
    pub home: PathBuf,
    /// The folder for output files of commands, with a folder per conversation.
    pub output_dir: PathBuf,
    /// Environment of children: [`child_environment`](crabtalk_guardian::child_environment).
    pub environment: Vec<(OsString, OsString)>,
    /// Timeout of a command unless the call requests another.
    pub timeout: Duration,
    /// Longest timeout that a call may request.
    pub max_timeout: Duration,
    /// Maximum bytes of a command's output shown to a model.
    pub output_bytes: usize,
    /// The paths of the closed home that may be read, in addition to the conversation's
    /// outputs: the skills in scope.
    pub readable: OpenPaths,
    /// The paths of the closed home that the file tools may read and change:
    /// `Crab.md` with `soul_editable`.
    pub writable: OpenPaths,
    /// The sandbox of commands.
    pub sandbox: SandboxConfig,
    /// The register of this process's children.
    pub children: Children,
    /// The soft limit of open files of a command, below this process's, which may need many more;
    /// `None` inherits it.
    pub open_files: Option<u64>,
    /// The journal from which runs are undone.
    pub changes: Arc<dyn ChangeJournal>,
    /// The limit on concurrent file operations, shared with other users of the disks.
    pub files: FileWork,
}

impl OsToolsConfig {
    /// Default limits; no path in the home is open, and orphans are not
    /// adopted.
    pub fn new(
        guardian: GuardianCommand,
        home: impl Into<PathBuf>,
        output_dir: impl Into<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        changes: Arc<dyn ChangeJournal>,
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
            changes,
            files: FileWork::default(),
        }
    }
}
