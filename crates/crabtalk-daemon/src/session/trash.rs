//! Lists and restores conversations in the trash (STORE-8).

use super::{Session, wanted};
use crate::error::Error;
use crabtalk_domain::storage::{LogId, RunRecord, Summary};
use crabtalk_proto::*;
use jiff::Timestamp;

/// Maximum conversations in one answer, which fit into a frame with the longest names
/// and titles (WIRE-1).
const MAX_LISTED: usize = 2000;

/// Converts the record of a failed run.
pub(super) fn failure(run: RunRecord) -> FailedRun {
    FailedRun {
        run: run.id,
        code: run.code,
        error: match run.error.as_str() {
            // Old logs lack the reason.
            "" => "the run failed".into(),
            error => error.to_owned(),
        },
    }
}

/// Converts the summary of a conversation.
pub(super) fn info(summary: Summary) -> ConversationInfo {
    let used_at = Timestamp::try_from(summary.modified).map(|at| at.to_string());
    ConversationInfo {
        agent: summary.key.agent.to_string(),
        sender: summary.key.sender.to_string(),
        seq: summary.seq,
        title: summary.meta.title,
        file_path: summary.id.0,
        message_count: summary.message_count,
        alive_secs: summary.meta.uptime_secs,
        date: summary.meta.created_at,
        used_at: used_at.unwrap_or_default(),
        cwd: summary.meta.cwd,
        failed: summary.failed.map(failure),
    }
}

impl Session {
    pub(super) async fn removed(
        &self,
        request: ListTrashMsg,
    ) -> Result<RemovedConversationList, Error> {
        let storage = self.node.runtime.storage();
        let (agent, sender) = (wanted(&request.agent), wanted(&request.sender));
        let mut listed = storage.trash(agent, sender).await?;
        listed.retain(|summary| self.reaches_key(&summary.key));
        listed.truncate(MAX_LISTED);
        Ok(RemovedConversationList {
            conversations: listed.into_iter().map(info).collect(),
        })
    }

    /// Restores a conversation and indexes its archives.
    pub(super) async fn restore(&self, request: RestoreConversationMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let log = (!request.file.is_empty()).then_some(LogId(request.file));
        let storage = self.node.runtime.storage();
        storage.restore(&key, log.as_ref()).await?;
        self.node.memory().archives().note(&key);
        Ok(())
    }
}
