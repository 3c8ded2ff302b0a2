//! What cannot be read of conversations.
//!
//! Invariants: a few files are looked at together, so that others get their turn at
//! the disk; a look ends with its time.

use super::Session;
use crate::error::Error;
use crabtalk_domain::storage::BrokenLog as Broken;
use crabtalk_proto::*;
use crabtalk_store::Records;
use std::time::Duration;
use tokio::time::Instant;

/// Logs that one answer names: who has more of them has one cause to look for.
const MAX_TOLD: usize = 100;

/// How long a look may take: it may come again, and nobody waits for longer.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Files of which line 1 is read together.
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
    /// What is wrong with the database of records.
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
