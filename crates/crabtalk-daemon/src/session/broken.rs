//! Unreadable parts of conversations and records.
//!
//! Invariants: a check reads a few files at a time, so that others get the disk between
//! them; a check is bounded in time.

use super::Session;
use crate::error::Error;
use crabtalk_domain::storage::BrokenLog as Broken;
use crabtalk_proto::*;
use crabtalk_store::Records;
use std::time::Duration;
use tokio::time::Instant;

/// Most logs in one answer: more of them have a common cause.
const MAX_TOLD: usize = 100;

/// Longest time of a check.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Files whose first lines are read together.
const HEADS: usize = 256;

fn told(broken: Broken) -> BrokenLog {
    let (agent, sender) = broken.key.map_or_else(Default::default, |key| {
        (key.agent.to_string(), key.sender.to_string())
    });
    BrokenLog {
        file: broken.file,
        agent,
        sender,
        lines: broken.lines,
        first_at: broken.first_at,
        reason: broken.reason,
        messages: broken.messages,
    }
}

impl Session {
    /// Checks the database of records.
    async fn damaged_records(&self) -> Option<BrokenLog> {
        let records = Records::in_state(&self.node.home.state_dir());
        let checked = tokio::task::spawn_blocking(move || records.check());
        let reason = match checked.await.ok()? {
            Ok(found) if found.is_empty() => return None,
            Ok(found) => found.join("; "),
            Err(error) => error.to_string(),
        };
        Some(BrokenLog {
            file: "../state/records.db".to_owned(),
            reason,
            ..BrokenLog::default()
        })
    }

    pub(super) async fn broken_logs(
        &self,
        request: CheckConversationsMsg,
    ) -> Result<BrokenLogList, Error> {
        let storage = self.node.runtime.storage();
        let names = storage.file_names(request.trash, request.lines).await?;
        let together = if request.lines { 1 } else { HEADS };
        let deadline = Instant::now() + MAX_TIME;
        let mut list = BrokenLogList::default();
        if request.lines && !request.trash {
            list.logs.extend(self.damaged_records().await);
        }
        for names in names.chunks(together) {
            if list.logs.len() > MAX_TOLD || Instant::now() >= deadline {
                list.incomplete = true;
                break;
            }
            let found = storage.broken(request.trash, names.to_vec(), request.lines);
            let found = found.await?;
            list.logs.extend(found.into_iter().map(told));
        }
        list.incomplete |= list.logs.len() > MAX_TOLD;
        list.logs.truncate(MAX_TOLD);
        Ok(list)
    }
}
