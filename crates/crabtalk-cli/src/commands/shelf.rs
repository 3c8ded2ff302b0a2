//! `conversations title|search|rm|trash|restore`.

use super::{Context, logs, utf8_folder};
use crate::args::Shelf;
use crate::error::Error;
use crate::text::{clean, summary};
use crabtalk_proto::{
    FoundMessage, ListTrashMsg, RemoveConversationMsg, RestoreConversationMsg,
    SearchConversationsMsg, SetConversationMsg,
};
use serde_json::json;
use std::path::Path;

pub(super) async fn run(context: &mut Context, command: Shelf) -> Result<(), Error> {
    match command {
        Shelf::Title { title } => set_title(context, title.join(" ")).await,
        Shelf::Folder { folder } => set_folder(context, &folder).await,
        Shelf::Search { words, limit } => search(context, words.join(" "), limit).await,
        Shelf::Rm => remove(context).await,
        Shelf::Trash => trash(context).await,
        Shelf::Restore { file } => restore(context, file).await,
    }
}

async fn set_title(context: &mut Context, title: String) -> Result<(), Error> {
    let request = SetConversationMsg {
        agent: context.agent(),
        sender: context.sender(),
        title: Some(title.clone()),
        cwd: None,
    };
    context.call(request).await?;
    let said = match title.as_str() {
        "" => "crabtalk: title removed".to_owned(),
        title => format!("crabtalk: title set to {}", summary(title)),
    };
    context.done(json!({"title": title}), &said)
}

async fn set_folder(context: &mut Context, folder: &Path) -> Result<(), Error> {
    // The folders of a remote daemon are not on this machine.
    let cwd = match context.known_client().endpoint().is_local() {
        true => utf8_folder(folder)?,
        false => folder.to_string_lossy().into_owned(),
    };
    let request = SetConversationMsg {
        agent: context.agent(),
        sender: context.sender(),
        title: None,
        cwd: Some(cwd.clone()),
    };
    context.call(request).await?;
    let said = format!("crabtalk: working folder set to {cwd}");
    context.done(json!({"cwd": cwd}), &said)
}

async fn search(context: &mut Context, query: String, limit: u32) -> Result<(), Error> {
    let request = SearchConversationsMsg {
        query,
        agent: context.agent(),
        sender: context.named_sender(),
        limit,
    };
    let found = context.call(request).await?;
    if found.incomplete {
        context.note(
            "crabtalk: the search is incomplete: add words, raise `-n`, or see `crabtalk daemon \
             logs` for unreadable conversations",
        )?;
    }
    if context.for_scripts(&found.messages)? {
        return Ok(());
    }
    if found.messages.is_empty() {
        let none = "no matches; all words must be in one message";
        return context.note(none);
    }
    for message in &found.messages {
        let heading = heading(message, &context.when(&message.at));
        let screen = &mut context.console.screen;
        screen.line(&heading)?;
        for line in clean(message.snippet.trim()).lines() {
            screen.line(&format!("    {line}"))?;
        }
    }
    Ok(())
}

/// The conversation, author and time of a message.
fn heading(message: &FoundMessage, at: &str) -> String {
    let speaker = match message.index {
        Some(_) => message.role.as_str(),
        None => "title",
    };
    let parts = [&message.agent, &message.sender, &message.title, speaker, at];
    let parts = parts.map(summary).into_iter();
    let parts = parts.filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" | ")
}

async fn remove(context: &mut Context) -> Result<(), Error> {
    let request = RemoveConversationMsg {
        agent: context.agent(),
        sender: context.sender(),
    };
    context.call(request).await?;
    context.done(
        json!({"removed": true}),
        "crabtalk: moved to the trash; `crabtalk conversations restore` restores it",
    )
}

async fn trash(context: &mut Context) -> Result<(), Error> {
    let request = ListTrashMsg {
        agent: context.agent(),
        sender: context.named_sender(),
    };
    let removed = context.call(request).await?;
    logs::tell_left_out(context, true).await?;
    if context.for_scripts(&removed.conversations)? {
        return Ok(());
    }
    let rows = removed.conversations.iter().map(|info| {
        vec![
            info.agent.clone(),
            info.sender.clone(),
            info.message_count.to_string(),
            context.when(&info.used_at),
            info.title.clone(),
            info.file_path.clone(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let header = ["agent", "sender", "messages", "used", "title", "file"];
    context.print_table(&header, rows, "the trash is empty")
}

async fn restore(context: &mut Context, file: Option<String>) -> Result<(), Error> {
    let request = RestoreConversationMsg {
        agent: context.agent(),
        sender: context.sender(),
        file: file.unwrap_or_default(),
    };
    context.call(request).await?;
    context.done(json!({"restored": true}), "crabtalk: restored")
}
