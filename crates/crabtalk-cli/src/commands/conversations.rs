//! `conversations` and `history`.

use super::{Context, logs};
use crate::args::Page;
use crate::error::Error;
use crate::history::{last_entries, show_entry};
use crate::json;
use crate::project::Projects;
use crate::text::summary;
use crabtalk_proto::{
    ActiveConversationInfo, Client, ConversationInfo, GetHistoryMsg, HistoryEntry,
    ListActiveConversationsMsg, ListConversationsMsg,
};
use std::collections::HashMap;
use std::path::Path;

/// Maximum number of unreadable logs listed.
const MAX_FAILURES: usize = 5;

pub(super) async fn list(context: &mut Context, limit: u32) -> Result<(), Error> {
    let (agent, sender) = (context.agent(), context.named_sender());
    let mut connection = context.connection().await?;
    let active = ListActiveConversationsMsg {
        agent: agent.clone(),
        sender: sender.clone(),
        limit,
    };
    let active = connection
        .list_active_conversations(active)
        .await?
        .conversations;
    let found = connection
        .list_conversations(ListConversationsMsg {
            agent,
            sender,
            limit,
        })
        .await?;
    logs::tell_left_out(context, false).await?;
    let active: HashMap<(&str, &str), &ActiveConversationInfo> = active
        .iter()
        .map(|a| ((a.agent.as_str(), a.sender.as_str()), a))
        .collect();
    let state = |agent: &str, sender: &str| active.get(&(agent, sender)).copied();
    if found.more {
        context.note(&format!(
            "crabtalk: only the latest {limit}; `-n 0` lists all"
        ))?;
    }
    let found = found.conversations;
    let object = |info| json::conversation(info, state(&info.agent, &info.sender));
    if context.for_scripts(found.iter().map(object))? {
        return Ok(());
    }
    let projects = Projects::read(&context.home)?;
    let found = by_project(found);
    let rows = found.iter().map(|info| {
        let active = state(&info.agent, &info.sender);
        let state = match active {
            Some(active) if !active.asks.is_empty() => "asks",
            Some(active) if active.running => "runs",
            Some(_) | None if info.failed.is_some() => "failed",
            Some(_) | None => "",
        };
        vec![
            info.agent.clone(),
            info.sender.clone(),
            info.message_count.to_string(),
            context.when(&info.used_at),
            full(active),
            state.to_owned(),
            info.title.clone(),
            folder(context, projects.folder_of(&info.sender)),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let failures: Vec<_> = found.iter().filter_map(failure).collect();
    let header = [
        "agent", "sender", "messages", "used", "context", "state", "title", "folder",
    ];
    context.print_table(&header, rows, "no conversations")?;
    for failure in failures.iter().take(MAX_FAILURES) {
        context.note(failure)?;
    }
    Ok(())
}

/// The last failure of a conversation, in one line.
fn failure(info: &ConversationInfo) -> Option<String> {
    let run = info.failed.as_ref()?;
    Some(format!(
        "{} for {}: run {} failed: {} ({})",
        summary(&info.agent),
        summary(&info.sender),
        run.run,
        summary(&run.error),
        run.code
    ))
}

/// The used context of a conversation, in percent of the window or in tokens.
fn full(active: Option<&ActiveConversationInfo>) -> String {
    let Some((active, used)) = active.and_then(|a| Some((a, a.context_used?))) else {
        return String::new();
    };
    match active.context_window {
        Some(window) if window > 0 => format!("{}%", (used * 100).div_ceil(window)),
        Some(_) | None => crabtalk_render::tokens(used),
    }
}

/// Groups conversations by sender, so that a project's are together.
/// Senders, and the conversations of each, keep the order of last use.
fn by_project(found: Vec<ConversationInfo>) -> Vec<ConversationInfo> {
    let mut first = HashMap::new();
    for (at, info) in found.iter().enumerate() {
        first.entry(info.sender.clone()).or_insert(at);
    }
    let mut found = found;
    found.sort_by_key(|info| first.get(&info.sender).copied());
    found
}

/// A project's folder, abbreviated by `~` if it is below the user's home.
fn folder(context: &Context, folder: Option<&Path>) -> String {
    let Some(folder) = folder else {
        return String::new();
    };
    let home = context.home.user_home();
    match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

pub(super) async fn history(context: &mut Context, args: Page) -> Result<(), Error> {
    let entries = last_messages(context, args.limit, args.before).await?.1;
    let screen = &mut context.console.screen;
    for entry in &entries {
        if context.global.json {
            screen.json(&json::history_entry(entry))?;
        } else {
            show_entry(screen, entry)?;
        }
    }
    Ok(())
}

/// The last messages before an index, oldest first, with the conversation's agent and sender.
pub(super) async fn last_messages(
    context: &mut Context,
    limit: u32,
    before: Option<u64>,
) -> Result<((String, String), Vec<HistoryEntry>), Error> {
    let (agent, sender) = (context.agent(), context.sender());
    let mut connection = context.connection().await?;
    let found = last_entries(limit, before, async |limit, before| {
        let request = GetHistoryMsg {
            agent: agent.clone(),
            sender: sender.clone(),
            before,
            limit,
            first: false,
        };
        let page = connection.get_history(request).await?;
        Ok(((page.agent, page.sender), page.entries, page.more))
    });
    found.await
}
