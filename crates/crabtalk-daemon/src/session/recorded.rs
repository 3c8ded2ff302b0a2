//! Writes the audit entries of requests (REMOTE-2), and reads the audit for clients.
//!
//! Invariant: an operation that only stops something is done even if its entry cannot
//! be written.

use super::Session;
use super::requests::{Recorded, row};
use crate::audit::entry;
use crate::error::Error;
use crabtalk_domain::records::{self, AuditEntry};
use crabtalk_proto::client_message::Msg;
use crabtalk_proto::*;
use crabtalk_runtime::PendingAsk as Waiting;

/// The entry for an answer to an approval, with everything that was shown.
fn answered(what: &str, pending: &Waiting, content: &str) -> AuditEntry {
    let ask = &pending.ask;
    let questions = ask.questions.iter().map(|q| q.question.as_str());
    AuditEntry::new(String::new(), what, "")
        .with("ask", &*ask.id)
        .with("agent", pending.key.agent.as_str())
        .with("sender", pending.key.sender.as_str())
        .with("tool", &*ask.tool)
        .with("shown", &*ask.detail)
        .with("question", questions.collect::<Vec<_>>().join("\n"))
        .with("answer", content)
}

/// Whether an answer denies. Any other answer requires its entry first.
fn denies(content: &str) -> bool {
    let content = content.trim().to_lowercase();
    matches!(content.as_str(), "3" | "n" | "no" | "deny") || content.starts_with("deny:")
}

impl Session {
    /// Writes the entry that a request requires before it is done, and returns the entry's
    /// number.
    pub(super) fn record_first(
        &self,
        request: &Msg,
    ) -> Option<impl Future<Output = Result<u64, Error>> + Send + 'static> {
        let (of_request, is_needed) = match (row(request).1, request) {
            (Recorded::First(entry), _) => (entry, true),
            (Recorded::Anyway(entry), _) => (entry, false),
            (Recorded::Answer, Msg::ReplyToAsk(reply)) => {
                let pending = self.approval_of(reply)?;
                let denied = denies(&reply.content);
                let what = if denied { "denied" } else { "allowed" };
                (answered(what, &pending, &reply.content), !denied)
            }
            (Recorded::No | Recorded::Answer, _) => return None,
        };
        let entry = AuditEntry {
            about: of_request.about,
            ..self.entry(&of_request.what)
        };
        let audit = self.node.audit.clone();
        Some(async move {
            match audit.record(entry).await {
                Err(_) if !is_needed => Ok(0),
                recorded => recorded,
            }
        })
    }

    /// Records that the operation of an earlier entry failed.
    pub(super) fn record_failure(&self, operation: &'static str, entry: u64, status: &Status) {
        if entry > 0 {
            let failed = self.entry("not-done").with("entry", entry);
            let failed = failed
                .with("operation", operation)
                .with("code", status.code)
                .with("why", &*status.message);
            self.node.audit.queue(failed);
        }
    }

    /// Creates an entry with this client as the principal.
    pub(super) fn entry(&self, what: &str) -> AuditEntry {
        let mut entry = entry(what, self.answering());
        entry.from = self.address();
        entry
    }

    /// The pending approval that a reply answers; `None` for a question, or if no ask is
    /// pending.
    fn approval_of(&self, reply: &ReplyToAsk) -> Option<Waiting> {
        let id = reply.ask_id.as_deref().filter(|id| !id.is_empty());
        let key = self.key(&reply.agent, &reply.sender).ok()?;
        let asks = self.node.runtime.asks(None, None);
        let asked = asks.into_iter().find(|pending| match id {
            Some(id) => pending.ask.id == id,
            None => pending.key == key && !pending.inbox,
        });
        asked.filter(|pending| pending.ask.kind == crabtalk_domain::AskKind::Approval)
    }

    pub(super) async fn audit_page(&self, request: ListAuditMsg) -> Result<AuditPage, Error> {
        let limit = super::as_many(request.limit, DEFAULT_PAGE, MAX_PAGE);
        let log = &self.node.audit.log;
        let page = log.latest(request.before, limit).await.map_err(unread)?;
        let (mut checked, mut problem) = (0, String::new());
        if request.verify {
            let check = log.verify().await.map_err(unread)?;
            (checked, problem) = (check.entries, check.problem.unwrap_or_default());
        }
        let mut lines = page.lines;
        let mut more = page.more;
        let mut bytes = 0;
        // The newest entries that fit into a frame.
        let fit = lines.iter().rev().take_while(|line| {
            bytes += line.len();
            bytes < MAX_PAGE_BYTES
        });
        let fit = fit.count();
        if fit < lines.len() {
            more = true;
            lines.drain(..lines.len() - fit);
        }
        Ok(AuditPage {
            lines,
            more,
            checked,
            problem,
        })
    }

    /// Begins another chain after a broken one, whose entries remain.
    pub(super) async fn begin_audit_chain(&self, _: NewAuditChainMsg) -> Result<(), Error> {
        let log = &self.node.audit.log;
        let Some(problem) = log.verify().await.map_err(unread)?.problem else {
            return Err(Error::Conflict(
                "the audit chain is intact: nothing was changed".into(),
            ));
        };
        let first = self.entry("new-chain").with("problem", problem);
        log.begin_chain(first).await.map_err(unread)
    }
}

fn unread(error: records::Error) -> Error {
    Error::Failed(format!("the audit: {error}"))
}

/// Default number of entries in a page.
const DEFAULT_PAGE: usize = 100;

/// Maximum number of entries of a page.
const MAX_PAGE: usize = 1000;

/// Maximum bytes of a page, well below the frame's limit (WIRE-1).
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
