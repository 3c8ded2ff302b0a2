//! `memory`: manages memory entries that the sender can see.

use super::{Context, search};
use crate::args::Memory;
use crate::error::Error;
use crate::{json, stdin};
use crabtalk_proto::{
    Client, ForgetMsg, GetMemoryMsg, ImportMemoryMsg, ListMemoryMsg, MemoryEntry, RememberMsg,
};
use serde_json::json;
use std::path::Path;

/// Entries per request; the daemon may return fewer.
const PAGE: u32 = 1000;

pub(super) async fn run(context: &mut Context, command: Memory) -> Result<(), Error> {
    match command {
        Memory::List => list(context).await,
        Memory::Show { name } => show(context, name.join(" ")).await,
        Memory::Recall(args) => search::search(context, args).await,
        Memory::Add {
            name,
            text,
            description,
            shared,
            private,
            no_stdin,
        } => {
            let content = content(&text.join(" "), no_stdin)?;
            let entry = RememberMsg {
                agent: context.agent(),
                sender: context.sender(),
                name,
                description,
                content,
                shared: (shared || private).then_some(shared),
            };
            add(context, entry).await
        }
        Memory::Rm { name } => remove(context, name.join(" ")).await,
        Memory::Import { folder } => import(context, &folder).await,
    }
}

/// The content of an entry: the text, and standard input.
fn content(text: &str, no_stdin: bool) -> Result<String, Error> {
    let piped = stdin::piped(no_stdin)?;
    let content = stdin::append(text, &piped);
    if content.trim().is_empty() {
        return Err(Error::Usage(
            "nothing to remember: write it after the name, or pipe it in".to_owned(),
        ));
    }
    Ok(content)
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let mut connection = context.connection().await?;
    let (agent, sender) = (context.agent(), context.sender());
    let (mut entries, mut warnings): (Vec<MemoryEntry>, Vec<String>) = Default::default();
    loop {
        let request = ListMemoryMsg {
            agent: agent.clone(),
            sender: sender.clone(),
            offset: u32::try_from(entries.len()).unwrap_or(u32::MAX),
            limit: PAGE,
        };
        let page = connection.list_memory(request).await?;
        warnings.extend(page.warnings);
        let more = page.more && !page.entries.is_empty();
        entries.extend(page.entries);
        if !more {
            break;
        }
    }
    for warning in &warnings {
        let said = format!("crabtalk: skipped: {warning}");
        context.problem(&said)?;
    }
    if context.for_scripts(entries.iter().map(json::memory_info))? {
        return Ok(());
    }
    let rows = entries.into_iter().map(|entry| {
        let shared = if entry.shared { "yes" } else { "" };
        let day = entry.updated.get(..10).unwrap_or_default().to_owned();
        let name = entry.name;
        vec![name, entry.sender, shared.into(), day, entry.description]
    });
    let header = ["name", "sender", "shared", "updated", "description"];
    context.print_table(&header, rows, "no memory entries")
}

async fn show(context: &mut Context, name: String) -> Result<(), Error> {
    let request = GetMemoryMsg {
        agent: context.agent(),
        sender: context.sender(),
        name,
    };
    let entry = context.call(request).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&json::of(&entry))?);
    }
    if !entry.description.is_empty() {
        screen.line(&entry.description)?;
        screen.line("")?;
    }
    Ok(screen.line(entry.content.trim_end())?)
}

async fn add(context: &mut Context, entry: RememberMsg) -> Result<(), Error> {
    let name = entry.name.trim().to_owned();
    context.call(entry).await?;
    let said = format!("crabtalk: remembered {name}");
    context.done(json!({ "remembered": name }), &said)
}

async fn remove(context: &mut Context, name: String) -> Result<(), Error> {
    let request = ForgetMsg {
        agent: context.agent(),
        sender: context.sender(),
        name: name.clone(),
    };
    context.call(request).await?;
    let said = format!("crabtalk: forgot {name}");
    context.done(json!({ "forgotten": name }), &said)
}

async fn import(context: &mut Context, folder: &Path) -> Result<(), Error> {
    let path = super::utf8_folder(folder)?;
    let request = ImportMemoryMsg {
        agent: context.agent(),
        sender: context.sender(),
        path,
    };
    let report = context.call(request).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&json::of(&report))?);
    }
    for imported in &report.imported {
        screen.line(&format!("{} from {}", imported.name, imported.file))?;
    }
    for skipped in &report.skipped {
        screen.problem(&format!("crabtalk: {skipped}"))?;
    }
    Ok(screen.note(&format!(
        "crabtalk: {} imported, {} skipped",
        report.imported.len(),
        report.skipped.len()
    ))?)
}
