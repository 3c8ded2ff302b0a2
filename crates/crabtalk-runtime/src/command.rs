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

/// A run on its way to the conversation's task.
pub(crate) struct Job {
    pub(crate) request: RunRequest,
    pub(crate) log: Arc<RunLog>,
    /// Ends it, also before it has begun.
    pub(crate) cancel: CancellationToken,
    /// Where its asks are shown, if not in its own stream: at the root of a
    /// delegation (RUN-9).
    pub(crate) audience: Option<Arc<Publisher>>,
}

impl Job {
    /// A run whose asks are its own.
    pub(crate) fn new(request: RunRequest, log: Arc<RunLog>) -> Self {
        Self {
            request,
            log,
            cancel: CancellationToken::new(),
            audience: None,
        }
    }
}

/// Changes to what a conversation is called and where it works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
}

type Respond<T> = oneshot::Sender<Result<T, Error>>;

/// A command, handled in order. Small, since the queue allocates room for many.
pub(crate) enum Command {
    Run(Box<Job>),
    Compact {
        focus: Option<Box<str>>,
        reply: Respond<String>,
    },
    /// Puts the working history away without a summary.
    StartFresh {
        reply: Respond<String>,
    },
    /// Returns to before the message at an index of the log.
    Rewind {
        to: u64,
        reply: Respond<Rewound>,
    },
    /// Returns to the working history of an archive.
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
    /// How the run of a request came out.
    Outcome {
        request_id: Box<str>,
        reply: Respond<Option<RunOutcome>>,
    },
    /// Carries on what a crash cut off.
    Resume,
}

impl Command {
    /// The run that it begins, if it is one.
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
