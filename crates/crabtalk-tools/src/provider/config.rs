//! Configuration of the tools.

use crate::file_work::FileWork;
use crabtalk_domain::records::ChangeJournal;
use crabtalk_domain::tool::Invocation;
use crabtalk_guardian::{Children, GuardianCommand, SandboxConfig};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time a command gets unless the call or the configuration says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest time a call may ask for: a build, not a service.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of output a model reads: a few thousand tokens.
const DEFAULT_OUTPUT_BYTES: usize = 30_000;

/// The files and folders in the closed home that are open to a call.
pub type OpenPaths = Arc<dyn Fn(&Invocation) -> Vec<PathBuf> + Send + Sync>;

/// Configuration of the tools.
#[derive(Clone)]
pub struct OsToolsConfig {
    /// Starts a guardian.
    pub guardian: GuardianCommand,
    /// `$CRABTALK_HOME`, closed to the tools (GATE-3).
    pub home: PathBuf,
    /// Where whole outputs of commands go, a folder per conversation.
    pub output_dir: PathBuf,
    /// Variables of children: [`child_environment`](crabtalk_guardian::child_environment).
    pub environment: Vec<(OsString, OsString)>,
    /// Time a command gets unless the call says otherwise.
    pub timeout: Duration,
    /// Longest time a call may ask for.
    pub max_timeout: Duration,
    /// Bytes of a command's output that a model reads.
    pub output_bytes: usize,
    /// The paths of the closed home that may be read, beside the conversation's
    /// outputs: the skills in scope.
    pub readable: OpenPaths,
    /// The paths of the closed home that the file tools may read and change:
    /// `Crab.md` with `soul_editable`.
    pub writable: OpenPaths,
    /// The sandbox of commands.
    pub sandbox: SandboxConfig,
    /// The process's register of children.
    pub children: Children,
    /// How many files a command may have open at first; `None` leaves it what
    /// this process has. Below this process's, which may need far more.
    pub open_files: Option<u64>,
    /// The journal from which changes of runs are undone.
    pub changes: Arc<dyn ChangeJournal>,
    /// Turns at the files, shared with other work on the same disks.
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
