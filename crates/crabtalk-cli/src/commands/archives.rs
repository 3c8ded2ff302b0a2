//! `archives`: what compactions put away.

use super::{Column, Context};
use crate::args::Archives;
use crate::error::Error;
use crate::history::show_entry;
use crate::json;
use crate::text::counted;
use crabtalk_proto::{ArchiveInfo, Client, GetArchiveMsg, HistoryEntry, ListArchivesMsg};

/// Messages asked for at a time; the daemon may give fewer.
const PAGE: u32 = 200;

pub(super) async fn run(context: &mut Context, command: Option<Archives>) -> Result<(), Error> {
    match command {
        None => list(context).await,
        Some(Archives::Show {
            index,
            limit,
            before,
        }) => show(context, index, limit, before).await,
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let request = ListArchivesMsg {
        agent: context.agent(),
        sender: context.sender(),
    };
    let found = context.call(request).await?;
    let columns: &[Column<ArchiveInfo>] = &[
        ("n", |archive| archive.index.to_string()),
        ("archived", |archive| day(&archive.archived_at)),
        ("messages", |archive| archive.message_count.to_string()),
        ("title", |archive| archive.title.clone()),
    ];
    let none = "nothing was put away yet; see `crabtalk compact`";
    context.list(&found.archives, columns, none)
}

/// The day of an instant; the whole text where it is none.
fn day(at: &str) -> String {
    at.get(..10).unwrap_or(at).to_owned()
}

async fn show(
    context: &mut Context,
    index: u32,
    limit: u32,
    before: Option<u64>,
) -> Result<(), Error> {
    let (info, entries) = last_entries(context, index, limit, before).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        screen.json(&json::of(&info))?;
        for entry in &entries {
            screen.json(&json::history_entry(entry))?;
        }
        return Ok(());
    }
    screen.line(&format!(
        "archive {} of {}, {}: {}",
        info.index,
        day(&info.archived_at),
        counted(info.message_count, "message"),
        info.title
    ))?;
    for entry in &entries {
        show_entry(screen, entry)?;
    }
    screen.line("--- summarised as:")?;
    Ok(screen.line(info.summary.trim())?)
}

/// The archive, and its last messages before an index, oldest first.
async fn last_entries(
    context: &mut Context,
    archive: u32,
    limit: u32,
    mut before: Option<u64>,
) -> Result<(ArchiveInfo, Vec<HistoryEntry>), Error> {
    let (agent, sender) = (context.agent(), context.sender());
    let mut pages = Vec::new();
    let mut missing = limit;
    let mut connection = context.connection().await?;
    loop {
        let request = GetArchiveMsg {
            agent: agent.clone(),
            sender: sender.clone(),
            index: archive,
            before,
            limit: missing.min(PAGE),
        };
        let page = connection.get_archive(request).await?;
        let count = u32::try_from(page.entries.len()).unwrap_or(u32::MAX);
        missing = missing.saturating_sub(count);
        before = page.entries.first().map(|entry| entry.index);
        pages.push(page.entries);
        if !page.more || missing == 0 || count == 0 {
            let entries = pages.into_iter().rev().flatten().collect();
            return Ok((page.info.unwrap_or_default(), entries));
        }
    }
}
