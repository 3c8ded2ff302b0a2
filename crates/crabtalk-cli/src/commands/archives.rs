//! `archives`: what compactions put away.

use super::{Column, Context};
use crate::args::Archives;
use crate::error::Error;
use crate::history::{last_entries, show_entry};
use crate::json;
use crate::text::counted;
use crabtalk_proto::{ArchiveInfo, Client, GetArchiveMsg, ListArchivesMsg};

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
    let (agent, sender) = (context.agent(), context.sender());
    let mut connection = context.connection().await?;
    let found = last_entries(limit, before, async |limit, before| {
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
