//! Commands to the task of a conversation.

use crate::Error;
use crate::conversation::Rewound;
use crate::events::RunLog;
use crate::publisher::Publisher;
use crate::request::RunRequest;
use crabtalk_domain::RunOutcome;
use crabtalk_domain::storage::RunRecord;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A run to submit to the conversation's task.
pub(crate) struct Job {
    pub(crate) request: RunRequest,
    pub(crate) log: Arc<RunLog>,
    /// Cancels the run, also before it begins.
    pub(crate) cancel: CancellationToken,
    /// The stream that shows its asks, if not its own: that of the root of a
    /// delegation (RUN-9).
    pub(crate) audience: Option<Arc<Publisher>>,
}

impl Job {
    /// Creates a job that shows its asks in its own stream.
    pub(crate) fn new(request: RunRequest, log: Arc<RunLog>) -> Self {
        Self {
            request,
            log,
            cancel: CancellationToken::new(),
            audience: None,
        }
    }
}

/// Changes of a conversation's title and folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
}

type Respond<T> = oneshot::Sender<Result<T, Error>>;

/// A command. Commands are handled in order, and are small since the queue preallocates
/// them.
pub(crate) enum Command {
    Run(Box<Job>),
    Compact {
        focus: Option<Box<str>>,
        reply: Respond<String>,
    },
    /// Archives the working history without a summary.
    StartFresh {
        reply: Respond<String>,
    },
    /// Restores the history before the message at an index of the log.
    Rewind {
        to: u64,
        reply: Respond<Rewound>,
    },
    /// Restores the working history of an archive.
    Reopen {
        archive: u32,
        reply: Respond<String>,
    },
    Set {
        change: Box<Change>,
        reply: Respond<()>,
    },
    Remove {
        reply: Respond<()>,
    },
    LastEnd {
        reply: Respond<RunRecord>,
    },
    /// Returns the outcome of a request's run.
    Outcome {
        request_id: Box<str>,
        reply: Respond<Option<RunOutcome>>,
    },
    /// Resumes a run that a crash interrupted.
    Resume,
}

impl Command {
    /// The run to begin, for a command that begins one.
    pub(crate) fn job(&self) -> Option<&Job> {
        if let Self::Run(job) = self {
            return Some(job);
        }
        None
    }

    /// Answers the command with an error.
    pub(crate) fn refuse(self, error: Error) {
        // The receiver may be gone.
        match self {
            Self::Run(job) => job.log.refuse(error),
            Self::Compact { reply, .. }
            | Self::StartFresh { reply }
            | Self::Reopen { reply, .. } => drop(reply.send(Err(error))),
            Self::Rewind { reply, .. } => drop(reply.send(Err(error))),
            Self::Set { reply, .. } | Self::Remove { reply } => drop(reply.send(Err(error))),
            Self::LastEnd { reply } => drop(reply.send(Err(error))),
            Self::Outcome { reply, .. } => drop(reply.send(Err(error))),
            Self::Resume => {}
        }
    }
}
