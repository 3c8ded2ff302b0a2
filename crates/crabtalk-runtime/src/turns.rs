//! Runs sandboxed commands concurrently, and a command outside the sandbox alone, so that
//! no sandboxed process changes what a person was shown.

use crabtalk_domain::tool::Subject;
use tokio::sync::{Semaphore, SemaphorePermit};

/// More permits than a step has commands.
const ALL: u32 = 1 << 16;

/// Orders the commands of a run and of its members.
pub(crate) struct CommandTurns(Semaphore);

impl Default for CommandTurns {
    fn default() -> Self {
        Self(Semaphore::new(ALL as usize))
    }
}

impl CommandTurns {
    /// Waits until no sandboxed command runs, for a command that asks to leave the sandbox.
    /// The permit covers the question and the execution.
    pub(crate) async fn alone(&self, subject: &Subject) -> Option<SemaphorePermit<'_>> {
        match subject {
            Subject::Command(command) if command.access.outside => self.take(ALL).await,
            Subject::Command(_) | Subject::Path { .. } | Subject::Other => None,
        }
    }

    /// Waits until no command outside the sandbox is waiting for approval or running.
    pub(crate) async fn beside(&self, subject: &Subject) -> Option<SemaphorePermit<'_>> {
        match subject {
            Subject::Command(command) if !command.access.outside => self.take(1).await,
            Subject::Command(_) | Subject::Path { .. } | Subject::Other => None,
        }
    }

    async fn take(&self, count: u32) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.0.acquire_many(count).await.ok()
    }
}
