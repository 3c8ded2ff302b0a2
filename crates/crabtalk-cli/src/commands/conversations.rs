//! `conversations` and `history`.

use super::Context;
use crate::args::{Conversations, History};
use crate::error::Error;
use crate::history::show_entry;
use crate::json;
use crabtalk_proto::{
    ActiveConversationInfo, Client, GetHistoryMsg, HistoryEntry, ListActiveConversationsMsg,
    ListConversationsMsg,
};
use std::collections::HashMap;

/// Messages asked for at a time; the daemon may give fewer.
const PAGE: u32 = 200;

pub(super) async fn list(context: &mut Context, args: Conversations) -> Result<(), Error> {
    let (agent, sender, limit) = (context.agent(), context.sender(), args.limit);
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
    let active: HashMap<(&str, &str), &ActiveConversationInfo> = active
        .iter()
        .map(|a| ((a.agent.as_str(), a.sender.as_str()), a))
        .collect();
    let state = |agent: &str, sender: &str| active.get(&(agent, sender)).copied();
    if found.more {
        context.console.screen.note(&format!(
            "crabtalk: the latest {limit}; `-n 0` lists all of them"
        ))?;
    }
    let found = found.conversations;
    if context.global.json {
        for info in &found {
            let state = state(&info.agent, &info.sender);
            context
                .console
                .screen
                .json(&json::conversation(info, state))?;
        }
        return Ok(());
    }
    let rows = found.iter().map(|info| {
        let state = match state(&info.agent, &info.sender) {
            Some(active) if !active.asks.is_empty() => "asks",
            Some(active) if active.running => "runs",
            Some(_) | None => "",
        };
        vec![
            info.agent.clone(),
            info.sender.clone(),
            info.message_count.to_string(),
            context.when(&info.date),
            state.to_owned(),
            info.title.clone(),
        ]
    });
    let rows = rows.collect();
    let header = ["agent", "sender", "messages", "created", "state", "title"];
    context.print_table(&header, rows, "there are no conversations yet")
}

pub(super) async fn history(context: &mut Context, args: History) -> Result<(), Error> {
    let entries = last_entries(context, args.limit, args.before).await?;
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

/// The last messages before an index, oldest first.
async fn last_entries(
    context: &mut Context,
    limit: u32,
    mut before: Option<u64>,
) -> Result<Vec<HistoryEntry>, Error> {
    let (agent, sender) = (context.agent(), context.sender());
    let mut connection = context.connection().await?;
    let mut pages = Vec::new();
    let mut missing = limit;
    loop {
        let request = GetHistoryMsg {
            agent: agent.clone(),
            sender: sender.clone(),
            before,
            limit: missing.min(PAGE),
        };
        let page = connection.get_history(request).await?;
        let count = u32::try_from(page.entries.len()).unwrap_or(u32::MAX);
        missing = missing.saturating_sub(count);
        before = page.entries.first().map(|entry| entry.index);
        pages.push(page.entries);
        if !page.more || missing == 0 || count == 0 {
            return Ok(pages.into_iter().rev().flatten().collect());
        }
    }
}
