//! What is done to one conversation: its run is cancelled or steered, its history
//! put away, its title and folder set.

use super::{Session, status};
use crabtalk_proto::*;

/// Longest title that a client may set, in characters.
const MAX_TITLE_CHARS: usize = 100;

impl Session {
    /// Cancels the run in flight (CONV-5).
    pub(super) async fn kill_run(&self, request: KillMsg) -> Result<(), Status> {
        let key = self.key(&request.agent, &request.sender)?;
        self.node.runtime.kill(&key).map_err(|e| status(&e))
    }

    /// Says something to the run in flight, which its next step reads (RUN-8).
    pub(super) async fn steer(&self, request: SteerSessionMsg) -> Result<(), Status> {
        let key = self.key(&request.agent, &request.sender)?;
        self.node
            .runtime
            .steer(&key, request.content)
            .await
            .map_err(|e| status(&e))
    }

    /// Puts the working history away behind a summary, or, for a fresh start,
    /// without one.
    pub(super) async fn put_away(&self, request: CompactMsg) -> Result<CompactResponse, Status> {
        let key = self.key(&request.agent, &request.sender)?;
        let runtime = &self.node.runtime;
        if request.fresh {
            let summary = String::new();
            let title = runtime.start_fresh(&key).await.map_err(|e| status(&e))?;
            return Ok(CompactResponse { summary, title });
        }
        let summary = runtime.compact(&key, request.focus).await;
        let summary = summary.map_err(|e| status(&e))?;
        let title = String::new();
        Ok(CompactResponse { summary, title })
    }

    /// Sets the title, the working directory, or both.
    pub(super) async fn change_conversation(
        &self,
        request: SetConversationMsg,
    ) -> Result<(), Status> {
        let key = self.key(&request.agent, &request.sender)?;
        let cwd = self.check_cwd(request.cwd.as_deref()).await?;
        let title = request.title.map(|title| check_title(&title)).transpose()?;
        if cwd.is_none() && title.is_none() {
            return Err(Status::bad_request("give a title or a cwd to set"));
        }
        self.node
            .runtime
            .set(&key, title, cwd)
            .await
            .map_err(|e| status(&e))
    }
}

fn check_title(title: &str) -> Result<String, Status> {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > MAX_TITLE_CHARS {
        let message = format!("give a title of 1 to {MAX_TITLE_CHARS} characters");
        return Err(Status::bad_request(message));
    }
    Ok(title)
}
