//! Requests about histories and archives.

use super::trash::failure;
use super::{Session, wire};
use crate::error::Error;
use crabtalk_domain::storage::{
    ArchiveInfo as Archive, LogEntry, LogId, LogPart, Page, RunPhase, Summary,
};
use crabtalk_domain::{ConversationKey, ToolCall, ToolCallInfo as Call};
use crabtalk_proto::*;

/// Default number of entries in a page.
const DEFAULT_PAGE: usize = 100;

/// Bytes from the beginning of a log in which first messages are searched. A longer first
/// message is not found.
const NEAR_THE_BEGIN: u64 = 64 << 10;

/// Maximum number of entries of a page.
const MAX_PAGE: usize = 1000;

/// Maximum bytes of a page's texts, well below the frame's limit (WIRE-1).
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Maximum messages of a log in the answer to a client that does not page.
const MAX_FILE_MESSAGES: usize = 10_000;

impl Session {
    pub(super) async fn history_page(&self, request: GetHistoryMsg) -> Result<HistoryPage, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let before = match request.first {
            true => Some(NEAR_THE_BEGIN),
            false => request.before,
        };
        // The page is cut to the limit below.
        let limit = match request.first {
            true => MAX_PAGE as u32,
            false => request.limit,
        };
        let part = LogPart::Conversation(key.clone());
        let mut page = self.page(part, before, limit).await?;
        // Shows acknowledged messages before a step consumes them.
        page.entries.append(&mut page.waiting);
        let (mut entries, more) = entries(page);
        if request.first && request.limit > 0 {
            entries.truncate(request.limit as usize);
        }
        Ok(HistoryPage {
            entries,
            more,
            agent: key.agent.to_string(),
            sender: key.sender.to_string(),
        })
    }

    async fn page(&self, source: LogPart, before: Option<u64>, limit: u32) -> Result<Page, Error> {
        let limit = super::as_many(limit, DEFAULT_PAGE, MAX_PAGE);
        let storage = self.node.runtime.storage();
        Ok(storage.page(&source, before, limit).await?)
    }

    pub(super) async fn history_of_file(
        &self,
        request: GetConversationHistoryMsg,
    ) -> Result<ConversationHistory, Error> {
        let storage = self.node.runtime.storage();
        let summary = self.log(&request.file_path).await?;
        let source = LogPart::Log(LogId(request.file_path));
        let mut page = storage.page(&source, None, MAX_FILE_MESSAGES).await?;
        // These messages have no field for images.
        for entry in &mut page.entries {
            entry.message = entry.message.with_notes(|image| Some(image.note()));
        }
        // Nor do they have one for runs.
        page.runs.clear();
        let (entries, _) = entries(page);
        let own = summary.key.agent.as_str();
        let message = |entry: HistoryEntry| ConversationMessage {
            speaker: match (entry.role.as_str(), entry.agent.as_str()) {
                ("assistant", "") => own.to_owned(),
                ("assistant", guest) => guest.to_owned(),
                _ => String::new(),
            },
            role: entry.role,
            content: entry.content,
        };
        Ok(ConversationHistory {
            messages: entries.into_iter().map(message).collect(),
            title: summary.meta.title,
            agent: summary.key.agent.to_string(),
        })
    }

    /// A conversation's log; one beyond reach is treated as absent.
    async fn log(&self, name: &str) -> Result<Summary, Error> {
        let storage = self.node.runtime.storage();
        let found = storage.log(&LogId(name.to_owned())).await;
        if self.reaches_everything() {
            return found.map_err(Error::from);
        }
        let found = found.ok().filter(|summary| self.reaches_key(&summary.key));
        found.ok_or_else(|| Error::NotFound(format!("conversation file {name:?} does not exist")))
    }

    pub(super) async fn delete_file(&self, request: DeleteConversationMsg) -> Result<(), Error> {
        let storage = self.node.runtime.storage();
        let summary = self.log(&request.file_path).await?;
        if summary.superseded {
            return Ok(storage.remove_log(&summary.id).await?);
        }
        self.remove(&summary.key).await
    }

    pub(super) async fn remove_pair(&self, request: RemoveConversationMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        self.remove(&key).await
    }

    /// Removes a conversation and its index.
    async fn remove(&self, key: &ConversationKey) -> Result<(), Error> {
        self.node.runtime.remove(key).await?;
        self.node.memory().archives().forget(key).await;
        Ok(())
    }

    pub(super) async fn archives(&self, request: ListArchivesMsg) -> Result<ArchiveList, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let archives = self.archives_of(&key).await?;
        Ok(ArchiveList {
            archives: archives.into_iter().map(info).collect(),
        })
    }

    async fn archives_of(&self, key: &ConversationKey) -> Result<Vec<Archive>, Error> {
        Ok(self.node.runtime.storage().archives(key).await?)
    }

    pub(super) async fn archive(&self, request: GetArchiveMsg) -> Result<ArchiveContent, Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let archives = self.archives_of(&key).await?;
        let found = archives
            .into_iter()
            .find(|archive| archive.index == request.index);
        let found = found.ok_or_else(|| {
            Error::NotFound(format!(
                "{key} has no archive {}; list them first",
                request.index
            ))
        })?;
        let source = LogPart::Archive(key, request.index);
        let (entries, more) = entries(self.page(source, request.before, request.limit).await?);
        Ok(ArchiveContent {
            info: Some(info(found)),
            entries,
            more,
        })
    }
}

fn info(archive: Archive) -> ArchiveInfo {
    ArchiveInfo {
        index: archive.index,
        title: archive.title,
        archived_at: archive.archived_at,
        message_count: archive.message_count,
        summary: archive.summary,
    }
}

/// The newest entries of a page that fit into a frame, oldest first, each with the
/// failed run that follows it.
fn entries(page: Page) -> (Vec<HistoryEntry>, bool) {
    let mut bytes = 0;
    let mut more = page.more;
    let mut entries = Vec::with_capacity(page.entries.len());
    let mut runs = page.runs.into_iter().rev().peekable();
    let mut rewinds = page.rewinds.into_iter().rev().peekable();
    // The run that ended after an entry, unless it also began after it.
    let mut ended = 0;
    for stored in page.entries.into_iter().rev() {
        let mut entry = entry(stored);
        while let Some((_, run)) = runs.next_if(|(at, _)| *at > entry.index) {
            ended = if run.phase == RunPhase::Start {
                0
            } else {
                run.id
            };
            // The last of several runs counts.
            if run.is_failure() {
                entry.failed.get_or_insert_with(|| failure(run));
            }
        }
        while let Some((_, to)) = rewinds.next_if(|(at, _)| *at >= entry.index) {
            // The last of several rewinds counts.
            entry.rewound_to.get_or_insert(to);
        }
        // The last entry may belong to a run in flight.
        entry.run = match runs.peek() {
            Some((_, run)) => run.id,
            None => ended,
        };
        let calls: usize = entry
            .tool_calls
            .iter()
            .map(|c| c.arguments.len() + c.name.len())
            .sum();
        let images: usize = entry.images.iter().map(|image| image.data.len()).sum();
        bytes += entry.content.len() + calls + images;
        if bytes > MAX_PAGE_BYTES && !entries.is_empty() {
            more = true;
            break;
        }
        entries.push(entry);
    }
    entries.reverse();
    (entries, more)
}

fn entry(
    LogEntry {
        index,
        message,
        compact,
    }: LogEntry,
) -> HistoryEntry {
    let call = |call: ToolCall| Call {
        call_id: call.id,
        name: call.name,
        arguments: call.arguments,
    };
    HistoryEntry {
        index,
        role: message.role.as_str().into(),
        content: wire::cap_beside(message.content, &message.images),
        images: wire::images(&message.images),
        agent: message.agent,
        timestamp: message.at,
        tool_calls: wire::calls(message.tool_calls.into_iter().map(call).collect()),
        tool_call_id: message.tool_call_id,
        compact,
        ..HistoryEntry::default()
    }
}
