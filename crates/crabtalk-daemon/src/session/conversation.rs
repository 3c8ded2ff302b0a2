//! Requests about one conversation: cancel and steer its run, compact its history, set
//! its title and folder.

use super::Session;
use crate::error::Error;
use crabtalk_proto::*;

/// Longest title that a client may set, in characters.
const MAX_TITLE_CHARS: usize = 100;

impl Session {
    /// Cancels the run in flight (CONV-5).
    pub(super) async fn kill_run(&self, request: KillMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        Ok(self.node.runtime.kill(&key)?)
    }

    /// Sends a message to the run in flight, for its next step (RUN-8).
    pub(super) async fn steer(&self, request: SteerSessionMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        Ok(self.node.runtime.steer(&key, request.content).await?)
    }

    /// Withdraws a queued message before its run begins (CONV-3).
    pub(super) async fn withdraw_queued(&self, request: WithdrawMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        Ok(self.node.runtime.withdraw(&key, &request.request_id)?)
    }

    /// Archives the working history with a summary, or without one for a fresh start.
    pub(super) async fn put_away(&self, request: CompactMsg) -> Result<CompactResponse, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let runtime = &self.node.runtime;
        if request.fresh {
            let title = runtime.start_fresh(&key).await?;
            return Ok(CompactResponse {
                title,
                ..CompactResponse::default()
            });
        }
        Ok(CompactResponse {
            summary: runtime.compact(&key, request.focus).await?,
            ..CompactResponse::default()
        })
    }

    /// Restores the working history before an earlier message (CONV-13).
    pub(super) async fn go_back(&self, request: RewindMsg) -> Result<RewindResponse, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let rewound = self.node.runtime.rewind(&key, request.index).await?;
        let (first_run, last_run) = rewound.runs.unwrap_or_default();
        Ok(RewindResponse {
            content: rewound.content,
            first_run,
            last_run,
        })
    }

    /// Restores the working history of an archive (CONV-14).
    pub(super) async fn reopen_archive(&self, request: ReopenMsg) -> Result<ReopenResponse, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let title = self.node.runtime.reopen(&key, request.index).await?;
        Ok(ReopenResponse { title })
    }

    /// Sets the title, the working directory, or both.
    pub(super) async fn change_conversation(
        &self,
        request: SetConversationMsg,
    ) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let cwd = self.check_cwd(request.cwd.as_deref()).await?;
        let title = request.title.map(|title| check_title(&title)).transpose()?;
        if cwd.is_none() && title.is_none() {
            return Err(Error::Invalid("give a title or a cwd to set".into()));
        }
        Ok(self.node.runtime.set(&key, title, cwd).await?)
    }
}

fn check_title(title: &str) -> Result<String, Error> {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > MAX_TITLE_CHARS {
        let message = format!("give a title of 1 to {MAX_TITLE_CHARS} characters");
        return Err(Error::Invalid(message));
    }
    Ok(title)
}
