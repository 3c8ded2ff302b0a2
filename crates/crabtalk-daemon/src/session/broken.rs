//! Finds unreadable parts of conversations and records.

use super::Session;
use crate::error::Error;
use crabtalk_domain::storage::{BrokenLog as Broken, Check};
use crabtalk_proto::*;
use std::time::Duration;

/// Maximum logs in one answer: more damage has a common cause.
const MAX_TOLD: usize = 100;

/// Time limit of a check.
const MAX_TIME: Duration = Duration::from_secs(20);

fn told(broken: Broken) -> BrokenLog {
    let (agent, sender) = broken.key.map_or_else(Default::default, |key| {
        (key.agent.to_string(), key.sender.to_string())
    });
    BrokenLog {
        file: broken.id.0,
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
        let reason = match self.node.records.check().await {
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
        let mut list = BrokenLogList::default();
        if request.lines && !request.trash {
            list.logs.extend(self.damaged_records().await);
        }
        let check = Check {
            in_trash: request.trash,
            lines: request.lines,
            most: MAX_TOLD - list.logs.len(),
            time: MAX_TIME,
        };
        let found = self.node.runtime.storage().check(check).await?;
        list.logs.extend(found.logs.into_iter().map(told));
        list.incomplete = found.incomplete;
        Ok(list)
    }
}
