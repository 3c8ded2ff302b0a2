//! Restores an earlier working history: that before a message (CONV-13), or that of an
//! archive (CONV-14).
//!
//! Invariants: the log only grows; the history is read from the log after the marker is
//! appended, so that memory and disk agree.

use super::Conversation;
use crate::{Error, compaction};
use crabtalk_domain::storage::{LogPart, MetaRecord, Record, RunPhase};
use crabtalk_domain::{ContextUse, Message, Role};

/// Number of entries to read at once while searching the run of a message.
const ENTRIES_AT_ONCE: usize = 64;

/// The result of a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// The text of the message before which the history now ends.
    pub content: String,
    /// Numbers of the first and last run that began with this message or later;
    /// `None` if there are none.
    pub runs: Option<(u64, u64)>,
}

impl Conversation {
    /// Restores the working history before a user message.
    pub(super) async fn rewind(&mut self, to: u64) -> Result<Rewound, Error> {
        self.carry_on().await?;
        let message = self.said_at(to).await?;
        let first = self.first_run_from(to).await?;
        let last = self.open.as_ref().map_or(0, |open| open.last_run);
        let marker = Record::Rewind {
            to,
            at: self.rt.now(),
        };
        self.go_back(marker).await?;
        Ok(Rewound {
            content: message.content,
            runs: (first <= last).then_some((first, last)),
        })
    }

    /// Archives the working history and restores that of an archive. Returns the title of
    /// the new archive, which is empty if nothing was archived.
    pub(super) async fn reopen(&mut self, archive: u32) -> Result<String, Error> {
        self.carry_on().await?;
        let key = &self.shared.key;
        let archives = self.rt.storage.archives(key).await?;
        let found = archives.into_iter().find(|info| info.index == archive);
        let marker = found.ok_or_else(|| Error::NoArchive(archive, (**key).clone()))?;
        let open = self.open.as_ref().ok_or(Error::ShuttingDown)?;
        let (to, at) = (marker.marker, self.rt.now());
        if open.history.is_empty() {
            self.go_back(Record::Rewind { to, at }).await?;
            return Ok(String::new());
        }
        let title = compaction::title_without_summary(&self.shared, open);
        let tokens_before = open.history.estimated_tokens();
        let marker = Record::Reopen {
            marker: to,
            title: title.clone(),
            archived_at: at,
        };
        self.go_back(marker).await?;
        self.tell_put_away(tokens_before, &title);
        Ok(title)
    }

    /// The user message at an index of the log.
    async fn said_at(&self, index: u64) -> Result<Message, Error> {
        let entries = self.rt.storage.entries(&self.shared.key, &[index]).await?;
        let said = entries.into_iter().find(|entry| {
            let is_user = entry.message.role == Role::User;
            is_user && !entry.compact
        });
        said.map(|entry| entry.message)
            .ok_or_else(|| Error::NoMessage(index, (*self.shared.key).clone()))
    }

    /// The number of the first run that began with the message at an index or later.
    async fn first_run_from(&self, index: u64) -> Result<u64, Error> {
        let part = LogPart::Conversation((*self.shared.key).clone());
        let mut before = index;
        loop {
            let page = self.rt.storage.page(&part, Some(before), ENTRIES_AT_ONCE);
            let page = page.await?;
            if let Some((at, run)) = page.runs.last() {
                let newest = page.entries.last().map_or(0, |entry| entry.index);
                // A run's start directly precedes its message.
                let begins = run.phase == RunPhase::Start && before == index && *at >= newest;
                return Ok(run.id + u64::from(!begins));
            }
            match page.entries.first() {
                Some(first) if page.more => before = first.index,
                _ => return Ok(1),
            }
        }
    }

    /// Appends a marker that points back, and reads the restored history.
    async fn go_back(&mut self, marker: Record) -> Result<(), Error> {
        let open = self.open.as_ref().ok_or(Error::ShuttingDown)?;
        let appended = compaction::append_marker(&self.shared, open, marker, None, None);
        let gone_back = async {
            let at = appended.await?;
            self.shared.synced_at_end(at).await?;
            self.forget();
            self.ensure_open(None).await?;
            self.tell_context().await
        };
        let gone_back = gone_back.await;
        if gone_back.is_err() {
            self.forget();
        }
        gone_back
    }

    /// Records the size of the context for the restored history.
    async fn tell_context(&mut self) -> Result<(), Error> {
        let open = self.open.as_ref().ok_or(Error::ShuttingDown)?;
        let used = open.history.estimated_tokens();
        let context = {
            let mut live = self.shared.live();
            let window = live.meta.context.and_then(|context| context.window);
            live.meta.context = Some(ContextUse { used, window });
            live.meta.context
        };
        let record = Record::Meta(MetaRecord {
            context,
            ..MetaRecord::default()
        });
        self.shared.append(&[record]).await?;
        Ok(())
    }

    /// Publishes that the working history became an archive.
    fn tell_put_away(&self, tokens_before: u64, title: &str) {
        let Some(open) = &self.open else { return };
        let tokens_after = open.history.estimated_tokens();
        let (rt, shared) = (&self.rt, &self.shared);
        compaction::tell_put_away(rt, shared, open, (tokens_before, tokens_after), title);
    }
}
