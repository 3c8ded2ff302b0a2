//! `export`: writes a conversation with its archives as Markdown or JSON.

use super::Context;
use super::conversations::last_messages;
use crate::args::Export;
use crate::error::Error;
use crate::history::{markdown, write_new};
use crate::json;
use crate::text::clean;
use crabtalk_proto::{HistoryEntry, ListConversationsMsg};
use serde_json::{Value, json};

pub(super) async fn export(context: &mut Context, args: Export) -> Result<(), Error> {
    let ((agent, sender), entries) = last_messages(context, u32::MAX, None).await?;
    let about = about(context, agent, sender).await?;
    let text = match context.global.json {
        true => as_json(about, &entries),
        false => as_markdown(&about, &entries),
    };
    let Some(file) = args.output else {
        return Ok(context.console.screen.answer(&text)?);
    };
    write_new(&file, &text).map_err(|e| Error::io(format_args!("write {}", file.display()), &e))?;
    let count = entries.len();
    context.done(
        json!({"messages": count, "file": file.display().to_string()}),
        &format!("crabtalk: {}", crate::text::written(count, &file)),
    )
}

/// The conversation's data from the list.
async fn about(context: &mut Context, agent: String, sender: String) -> Result<Value, Error> {
    let mut value = json!({"agent": agent, "sender": sender});
    let request = ListConversationsMsg {
        agent,
        sender,
        limit: 1,
    };
    let listed = context.call(request).await?;
    if let Some(info) = listed.conversations.first() {
        value = json::of(info);
    }
    Ok(value)
}

fn as_json(about: Value, entries: &[HistoryEntry]) -> String {
    let mut value = about;
    value["messages"] = entries.iter().map(json::history_entry).collect();
    format!("{value}\n")
}

fn as_markdown(about: &Value, entries: &[HistoryEntry]) -> String {
    let word = |name: &str| clean(about[name].as_str().unwrap_or_default()).into_owned();
    let title = match word("title") {
        title if title.is_empty() => format!("{} and {}", word("agent"), word("sender")),
        title => title,
    };
    let mut text = format!("# {title}\n\n");
    for (name, value) in [
        ("agent", word("agent")),
        ("sender", word("sender")),
        ("folder", word("cwd")),
        ("begun", word("date")),
    ] {
        if !value.is_empty() {
            text.push_str(&format!("- {name}: {value}\n"));
        }
    }
    for entry in entries {
        text.push('\n');
        text.push_str(&markdown(entry));
    }
    text
}
