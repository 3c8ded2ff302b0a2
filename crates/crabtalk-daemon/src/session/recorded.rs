//! Which requests have an entry of the audit before they are done (REMOTE-2).
//!
//! Invariants: every operation is looked at, or it does not compile; a value that may
//! be secret is in no entry; what only stops something goes on if the disk is full.

use super::Session;
use crate::audit::entry;
use crate::error::Error;
use crabtalk_domain::records::{self, AuditEntry};
use crabtalk_proto::client_message::Msg;
use crabtalk_proto::*;
use crabtalk_runtime::PendingAsk as Waiting;

/// Whether a request is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    No,
    /// Before it is done, or it is not done.
    First(&'static str),
    /// It is done whatever the disk says: it only stops something.
    Anyway(&'static str),
    /// An answer to an approval: allowing is recorded first, denying anyway.
    Answer,
}

/// Whether a request is recorded, and as what.
pub(super) fn recorded(request: &Msg) -> Recorded {
    use Recorded::{Answer, Anyway, First, No};
    match request {
        Msg::Kill(_) => Anyway("kill"),
        Msg::ReplyToAsk(_) => Answer,
        Msg::RemoveApproval(_) => Anyway("approval-removed"),
        Msg::RemoveConversation(_) | Msg::DeleteConversation(_) => First("conversation-removed"),
        Msg::RestoreConversation(_) => First("conversation-restored"),
        Msg::ImportMemory(_) => First("memory-imported"),
        Msg::CreateAgent(_) => First("agent-created"),
        Msg::UpdateAgent(_) => First("agent-changed"),
        Msg::DeleteAgent(_) => First("agent-deleted"),
        Msg::SetProvider(_) => First("provider-set"),
        Msg::DeleteProvider(_) => First("provider-deleted"),
        Msg::SetActiveModel(_) => First("model-chosen"),
        Msg::SetLocalMcps(_) | Msg::SetMcp(_) => First("mcp-set"),
        Msg::DeleteMcp(_) => First("mcp-deleted"),
        Msg::FinishMcpLogin(_) => First("mcp-login"),
        Msg::LogoutMcp(_) => First("mcp-logout"),
        Msg::SetEnabled(_) => First("switched"),
        Msg::CreateCron(_) => First("cron-created"),
        Msg::DeleteCron(_) => Anyway("cron-deleted"),
        Msg::SetCron(_) => First("cron-set"),
        Msg::SubscribeEvent(_) => First("subscribed"),
        Msg::UnsubscribeEvent(_) => Anyway("unsubscribed"),
        Msg::SetConfig(_) => First("config-set"),
        Msg::Reload(_) | Msg::ReloadConfig(_) => Anyway("reload"),
        Msg::CreateToken(_) => First("token-created"),
        Msg::RemoveToken(_) => Anyway("token-removed"),
        Msg::Undo(m) if !m.dry_run => First("undone"),
        any! {
            Hello Ping Send Stream ExpectMessage Attach SubscribeEvents SteerSession Compact ListAsks
            ListApprovals GetRights ListActiveConversations ListConversations ListTrash
            SearchConversations CheckConversations GetHistory GetConversationHistory SetConversation ListArchives
            GetArchive Search ListMemory GetMemory Remember Forget ListAgents GetAgent
            ListProviders ListModels ListMcps TestMcp TestModel FindProviders LoginMcp
            ListComponents ListSkills ListCrons RunCron ListCronRuns TestCron ListSubscriptions
            PublishEvent GetConfig ListTokens ListAudit NewAuditChain ListChanges Undo GetStats Extension
        } => No,
    }
}

/// What an entry says of a request, beside what it is: names and numbers, no values.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not recorded, or says nothing more, needs no arm"
)]
fn about(request: &Msg, entry: AuditEntry) -> AuditEntry {
    match request {
        Msg::Kill(m) => entry.with("agent", &*m.agent).with("sender", &*m.sender),
        Msg::RemoveConversation(m) => entry.with("agent", &*m.agent).with("sender", &*m.sender),
        Msg::DeleteConversation(m) => entry.with("file", &*m.file_path),
        Msg::RestoreConversation(m) => entry
            .with("agent", &*m.agent)
            .with("sender", &*m.sender)
            .with("file", &*m.file),
        Msg::RemoveApproval(m) => entry
            .with("index", m.index)
            .with("exact", m.exact.clone().unwrap_or_default()),
        Msg::ImportMemory(m) => entry.with("path", &*m.path),
        Msg::CreateAgent(m) => entry.with("agent", &*m.name),
        Msg::UpdateAgent(m) => entry.with("agent", &*m.name),
        Msg::DeleteAgent(m) => entry.with("agent", &*m.name),
        Msg::SetProvider(m) => entry.with("provider", &*m.name),
        Msg::DeleteProvider(m) => entry.with("provider", &*m.name),
        Msg::SetActiveModel(m) => entry.with("model", &*m.model),
        Msg::FinishMcpLogin(m) => entry.with("mcp", &*m.name),
        Msg::LogoutMcp(m) => entry.with("mcp", &*m.name),
        Msg::SetEnabled(m) => entry.with("name", &*m.name).with("enabled", m.enabled),
        Msg::CreateCron(m) => entry
            .with("agent", &*m.agent)
            .with("sender", &*m.sender)
            .with("schedule", &*m.schedule)
            .with("skill", &*m.skill)
            .with("content", m.content.clone().unwrap_or_default()),
        Msg::DeleteCron(m) => entry.with("id", m.id),
        Msg::SetCron(m) => {
            let entry = match m.paused {
                Some(paused) => entry.with("id", m.id).with("paused", paused),
                None => entry.with("id", m.id),
            };
            let texts = [
                ("schedule", &m.schedule),
                ("at", &m.at),
                ("skill", &m.skill),
                ("content", &m.content),
                ("cwd", &m.cwd),
                ("asks", &m.asks),
            ];
            let set = texts
                .into_iter()
                .filter_map(|(key, text)| Some((key, text.clone()?)));
            set.fold(entry, |entry, (key, text)| entry.with(key, text))
        }
        Msg::SubscribeEvent(m) => entry
            .with("source", &*m.source)
            .with("agent", &*m.target_agent),
        Msg::UnsubscribeEvent(m) => entry.with("id", m.id),
        Msg::SetConfig(m) => entry.with(
            "key",
            match m.key.as_str() {
                "" => "the whole file",
                key => key,
            },
        ),
        Msg::CreateToken(m) => entry
            .with("token", &*m.name)
            .with("role", &*m.role)
            .with("agents", m.agents.clone())
            .with("senders", m.senders.clone())
            .with("cwd", m.cwd.clone())
            .with("until", &*m.until),
        Msg::RemoveToken(m) => entry.with("token", &*m.name),
        Msg::Undo(m) => entry
            .with("agent", &*m.agent)
            .with("sender", &*m.sender)
            .with("run", m.run.unwrap_or(0)),
        _ => entry,
    }
}

/// An answer to an approval, with all that was shown.
fn answered(entry: AuditEntry, pending: &Waiting, content: &str) -> AuditEntry {
    let ask = &pending.ask;
    let questions = ask.questions.iter().map(|q| q.question.as_str());
    entry
        .with("ask", &*ask.id)
        .with("agent", pending.key.agent.as_str())
        .with("sender", pending.key.sender.as_str())
        .with("tool", &*ask.tool)
        .with("shown", &*ask.detail)
        .with("question", questions.collect::<Vec<_>>().join("\n"))
        .with("answer", content)
}

/// Whether an answer denies. Anything that is not plainly that is recorded first.
fn denies(content: &str) -> bool {
    let content = content.trim().to_lowercase();
    matches!(content.as_str(), "3" | "n" | "no" | "deny") || content.starts_with("deny:")
}

impl Session {
    /// Writes the entry that a request needs before it is done; its number.
    pub(super) fn record_first(
        &self,
        request: &Msg,
    ) -> Option<impl Future<Output = Result<u64, Error>> + Send + 'static> {
        let (what, needed) = match recorded(request) {
            Recorded::No => return None,
            Recorded::First(what) => (what, true),
            Recorded::Anyway(what) => (what, false),
            Recorded::Answer => ("", true),
        };
        let (entry, needed) = if let Msg::ReplyToAsk(reply) = request {
            let pending = self.approval_of(reply)?;
            let denied = denies(&reply.content);
            let what = if denied { "denied" } else { "allowed" };
            let entry = answered(self.entry(what), &pending, &reply.content);
            (entry, !denied)
        } else {
            (about(request, self.entry(what)), needed)
        };
        let audit = self.node.audit.clone();
        Some(async move {
            match audit.record(entry).await {
                Err(_) if !needed => Ok(0),
                recorded => recorded,
            }
        })
    }

    /// Says of an entry that what it tells was not done.
    pub(super) fn record_failure(&self, operation: &'static str, entry: u64, status: &Status) {
        if entry > 0 {
            let failed = self.entry("not-done").with("entry", entry);
            let failed = failed
                .with("operation", operation)
                .with("code", status.code)
                .with("why", &*status.message);
            self.node.audit.tell(failed);
        }
    }

    /// An entry of this client's.
    pub(super) fn entry(&self, what: &str) -> AuditEntry {
        let mut entry = entry(what, self.answering());
        entry.from = self.address();
        entry
    }

    /// The approval that a reply is meant for; `None` for questions, and where
    /// nothing waits.
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
        // The newest that fit into a frame.
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

    /// The chain that does not fit stays, and another one begins.
    pub(super) async fn begin_audit_chain(&self, _: NewAuditChainMsg) -> Result<(), Error> {
        let log = &self.node.audit.log;
        let Some(problem) = log.verify().await.map_err(unread)?.problem else {
            return Err(Error::Conflict(
                "all entries of the audit fit: nothing was changed".into(),
            ));
        };
        let first = self.entry("new-chain").with("problem", problem);
        log.begin_chain(first).await.map_err(unread)
    }
}

fn unread(error: records::Error) -> Error {
    Error::Failed(format!("the audit: {error}"))
}

/// Entries of a page when the client does not say.
const DEFAULT_PAGE: usize = 100;

/// Most entries of a page.
const MAX_PAGE: usize = 1000;

/// Most bytes of a page, well below the frame's limit (WIRE-1).
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
