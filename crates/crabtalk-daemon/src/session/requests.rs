//! The table of requests: the objects that each names, for the reach of tokens
//! (REMOTE-1), and its entry in the audit (REMOTE-2).
//!
//! Invariants: an operation without a row does not compile; an entry contains names and
//! numbers, never a value that may be secret.

use crabtalk_domain::records::AuditEntry;
use crabtalk_proto::client_message::Msg;
use crabtalk_proto::{
    CreateCronMsg, CreateTokenMsg, RemoveApprovalMsg, SetCronMsg, SetEnabledMsg, UndoMsg,
};

/// The objects that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names<'a> {
    /// No object with an owner.
    Nothing,
    /// A conversation, by agent and sender.
    Pair(&'a str, &'a str),
    /// A conversation that the client sends to, and another agent in it.
    Speaks(&'a str, &'a str, &'a str),
    Agent(&'a str),
    /// Objects of the answer, which is filtered, or an object that is found by a number or a
    /// file and checked then.
    Answer,
    /// An event's source, which may start any agent.
    Event(&'a str),
    /// The whole node.
    Node,
}

/// Whether a request has an entry in the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recorded {
    No,
    /// The operation requires the entry.
    First(AuditEntry),
    /// The operation does not require the entry, since it only stops something.
    Anyway(AuditEntry),
    /// An answer to an approval: allowing requires the entry, denying does not.
    Answer,
}

/// Creates an entry; the caller adds time, principal and address.
fn entry(what: &str) -> AuditEntry {
    AuditEntry::new(String::new(), what, "")
}

fn first(what: &str, key: &str, name: &str) -> Recorded {
    Recorded::First(entry(what).with(key, name))
}

fn of_pair(what: &str, agent: &str, sender: &str) -> AuditEntry {
    entry(what).with("agent", agent).with("sender", sender)
}

/// The row of a request.
pub(super) fn row(request: &Msg) -> (Names<'_>, Recorded) {
    use Names::{Agent, Answer, Event, Node, Nothing, Pair, Speaks};
    use Recorded::{Anyway, First, No};
    match request {
        any! { Hello Ping ListModels TestCron } => (Nothing, No),
        any! {
            ListAsks ListApprovals ListActiveConversations ListConversations ListTrash
            SearchConversations GetConversationHistory ListAgents ListSkills ListCrons RunCron
            ListCronRuns ListSubscriptions GetStats SubscribeEvents
        } => (Answer, No),
        any! {
            ListProviders TestModel FindProviders ListMcps TestMcp LoginMcp ListComponents
            GetConfig ListTokens ListAudit NewAuditChain CheckConversations Extension
        } => (Node, No),
        Msg::Send(m) => (speaks(&m.agent, &m.sender, &m.guest), No),
        Msg::Stream(m) => (speaks(&m.agent, &m.sender, &m.guest), No),
        Msg::ExpectMessage(m) => (Speaks(&m.agent, &m.sender, ""), No),
        Msg::Compact(m) => (Speaks(&m.agent, &m.sender, ""), No),
        Msg::Rewind(m) => (Speaks(&m.agent, &m.sender, ""), No),
        Msg::Reopen(m) => (Speaks(&m.agent, &m.sender, ""), No),
        Msg::SteerSession(m) => (Pair(&m.agent, &m.sender), No),
        Msg::Withdraw(m) => (Pair(&m.agent, &m.sender), No),
        Msg::GetHistory(m) => (Pair(&m.agent, &m.sender), No),
        Msg::SetConversation(m) => (Pair(&m.agent, &m.sender), No),
        Msg::ListArchives(m) => (Pair(&m.agent, &m.sender), No),
        Msg::GetArchive(m) => (Pair(&m.agent, &m.sender), No),
        Msg::Search(m) => (Pair(&m.agent, &m.sender), No),
        Msg::Attach(m) => (Pair(&m.agent, &m.sender), No),
        Msg::ListChanges(m) => (Pair(&m.agent, &m.sender), No),
        Msg::ListMemory(m) => (Pair(&m.agent, &m.sender), No),
        Msg::GetMemory(m) => (Pair(&m.agent, &m.sender), No),
        Msg::Remember(m) => (Pair(&m.agent, &m.sender), No),
        Msg::Forget(m) => (Pair(&m.agent, &m.sender), No),
        Msg::GetRights(m) => (Agent(&m.agent), No),
        Msg::GetAgent(m) => (Agent(&m.name), No),
        Msg::PublishEvent(m) => (Event(&m.source), No),
        Msg::Kill(m) => (
            Pair(&m.agent, &m.sender),
            Anyway(of_pair("kill", &m.agent, &m.sender)),
        ),
        Msg::ReplyToAsk(m) => {
            let has_id = m.ask_id.as_deref().is_some_and(|id| !id.is_empty());
            let names = match has_id {
                true => Answer,
                false => Pair(&m.agent, &m.sender),
            };
            (names, Recorded::Answer)
        }
        Msg::RemoveApproval(m) => (Answer, Anyway(approval_removed(m))),
        Msg::RemoveConversation(m) => (
            Pair(&m.agent, &m.sender),
            First(of_pair("conversation-removed", &m.agent, &m.sender)),
        ),
        Msg::DeleteConversation(m) => (Answer, first("conversation-removed", "file", &m.file_path)),
        Msg::RestoreConversation(m) => {
            let entry = of_pair("conversation-restored", &m.agent, &m.sender);
            let entry = entry.with("file", &*m.file);
            (Pair(&m.agent, &m.sender), First(entry))
        }
        Msg::Undo(m) => (Pair(&m.agent, &m.sender), undone(m)),
        Msg::ImportMemory(m) => (Node, first("memory-imported", "path", &m.path)),
        Msg::CreateAgent(m) => (Node, first("agent-created", "agent", &m.name)),
        Msg::UpdateAgent(m) => (Node, first("agent-changed", "agent", &m.name)),
        Msg::DeleteAgent(m) => (Node, first("agent-deleted", "agent", &m.name)),
        Msg::SetProvider(m) => (Node, first("provider-set", "provider", &m.name)),
        Msg::DeleteProvider(m) => (Node, first("provider-deleted", "provider", &m.name)),
        Msg::SetActiveModel(m) => (Node, first("model-chosen", "model", &m.model)),
        Msg::SetLocalMcps(_) | Msg::SetMcp(_) => (Node, First(entry("mcp-set"))),
        Msg::DeleteMcp(_) => (Node, First(entry("mcp-deleted"))),
        Msg::FinishMcpLogin(m) => (Node, first("mcp-login", "mcp", &m.name)),
        Msg::LogoutMcp(m) => (Node, first("mcp-logout", "mcp", &m.name)),
        Msg::SetEnabled(m) => (Node, First(switched(m))),
        Msg::CreateCron(m) => (Speaks(&m.agent, &m.sender, ""), First(cron_created(m))),
        Msg::SetCron(m) => (Answer, First(cron_set(m))),
        Msg::DeleteCron(m) => (Answer, Anyway(entry("cron-deleted").with("id", m.id))),
        Msg::SubscribeEvent(m) => {
            let entry = entry("subscribed").with("source", &*m.source);
            let entry = entry.with("agent", &*m.target_agent);
            (Agent(&m.target_agent), First(entry))
        }
        Msg::UnsubscribeEvent(m) => (Answer, Anyway(entry("unsubscribed").with("id", m.id))),
        Msg::SetConfig(m) if m.key.is_empty() => {
            (Node, first("config-set", "key", "the whole file"))
        }
        Msg::SetConfig(m) => (Node, first("config-set", "key", &m.key)),
        Msg::Reload(_) | Msg::ReloadConfig(_) => (Node, Anyway(entry("reload"))),
        Msg::CreateToken(m) => (Node, First(token_created(m))),
        Msg::RemoveToken(m) => (Node, Anyway(entry("token-removed").with("token", &*m.name))),
    }
}

fn switched(m: &SetEnabledMsg) -> AuditEntry {
    let entry = entry("switched").with("name", &*m.name);
    entry.with("enabled", m.enabled)
}

fn speaks<'a>(agent: &'a str, sender: &'a Option<String>, guest: &'a Option<String>) -> Names<'a> {
    let text = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
    Names::Speaks(agent, text(sender), text(guest))
}

fn approval_removed(m: &RemoveApprovalMsg) -> AuditEntry {
    let exact = m.exact.clone().unwrap_or_default();
    entry("approval-removed")
        .with("index", m.index)
        .with("exact", exact)
}

fn undone(m: &UndoMsg) -> Recorded {
    match m.dry_run {
        true => Recorded::No,
        false => {
            let entry = of_pair("undone", &m.agent, &m.sender);
            Recorded::First(entry.with("run", m.run.unwrap_or(0)))
        }
    }
}

fn cron_created(m: &CreateCronMsg) -> AuditEntry {
    of_pair("cron-created", &m.agent, &m.sender)
        .with("schedule", &*m.schedule)
        .with("skill", &*m.skill)
        .with("content", m.content.clone().unwrap_or_default())
}

fn cron_set(m: &SetCronMsg) -> AuditEntry {
    let mut entry = entry("cron-set").with("id", m.id);
    if let Some(paused) = m.paused {
        entry = entry.with("paused", paused);
    }
    for (key, text) in [
        ("schedule", &m.schedule),
        ("at", &m.at),
        ("skill", &m.skill),
        ("content", &m.content),
        ("cwd", &m.cwd),
        ("asks", &m.asks),
    ] {
        entry = entry.with(key, text.clone().unwrap_or_default());
    }
    entry
}

fn token_created(m: &CreateTokenMsg) -> AuditEntry {
    entry("token-created")
        .with("token", &*m.name)
        .with("role", &*m.role)
        .with("agents", m.agents.clone())
        .with("senders", m.senders.clone())
        .with("cwd", m.cwd.clone())
        .with("until", &*m.until)
}
