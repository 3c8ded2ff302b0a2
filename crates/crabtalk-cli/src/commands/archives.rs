//! `archives`: shows the messages before compactions.

use super::{Column, Context};
use crate::args::{Archives, Page};
use crate::chat;
use crate::error::Error;
use crate::history::{last_entries, show_entry};
use crate::json;
use crate::text::counted;
use crabtalk_proto::{ArchiveInfo, Client, GetArchiveMsg, ListArchivesMsg, ReopenMsg};

pub(super) async fn run(context: &mut Context, command: Option<Archives>) -> Result<(), Error> {
    match command {
        None => list(context).await,
        Some(Archives::Show { index, page }) => show(context, index, page).await,
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
    let none = "no archives yet; `crabtalk compact` and `crabtalk new` create them";
    context.list(&found.archives, columns, none)
}

/// Continues an archive in a chat. Without a terminal, only reopens it; without
/// a number, lists the archives.
pub(super) async fn resume(context: &mut Context, archive: Option<u32>) -> Result<(), Error> {
    if chat::is_on_screen(context) {
        return chat::resume(context, archive).await;
    }
    let Some(index) = archive else {
        return list(context).await;
    };
    let request = ReopenMsg {
        agent: context.agent(),
        sender: context.sender(),
        index,
    };
    let answer = context.call(request).await?;
    let said = match answer.title.as_str() {
        "" => format!("archive {index} is now the history"),
        title => {
            format!("archive {index} is now the history; the former one is archived as \"{title}\"")
        }
    };
    context.print(&answer, &said)
}

/// The day of a timestamp, or the whole text if it is invalid.
fn day(at: &str) -> String {
    at.get(..10).unwrap_or(at).to_owned()
}

async fn show(context: &mut Context, index: u32, page: Page) -> Result<(), Error> {
    let (agent, sender) = (context.agent(), context.sender());
    let mut connection = context.connection().await?;
    let found = last_entries(page.limit, page.before, async |limit, before| {
        let request = GetArchiveMsg {
            agent: agent.clone(),
            sender: sender.clone(),
            index,
            before,
            limit,
        };
        let page = connection.get_archive(request).await?;
        Ok::<_, Error>((page.info.unwrap_or_default(), page.entries, page.more))
    });
    let (info, entries) = found.await?;
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
