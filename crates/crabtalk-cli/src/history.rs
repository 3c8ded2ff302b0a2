//! Prints messages of a history.

use crate::screen::Screen;
use crate::text::{call_summary, image_note, summary};
use crate::todo::{self, Todo};
use crabtalk_files::Existing;
use crabtalk_proto::{HistoryEntry, ToolCallInfo};
use std::fs::File;
use std::io;
use std::path::Path;

/// Messages per request; the daemon may return fewer.
const PAGE: u32 = 200;

/// Reads the last messages before an index, oldest first, with the metadata of the
/// first page.
pub(crate) async fn last_entries<T, E>(
    limit: u32,
    mut before: Option<u64>,
    mut ask: impl AsyncFnMut(u32, Option<u64>) -> Result<(T, Vec<HistoryEntry>, bool), E>,
) -> Result<(T, Vec<HistoryEntry>), E> {
    let (mut pages, mut missing) = (Vec::new(), limit);
    loop {
        let (beside, entries, more) = ask(missing.min(PAGE), before).await?;
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        missing = missing.saturating_sub(count);
        before = entries.first().map(|entry| entry.index);
        pages.push(entries);
        if !more || missing == 0 || count == 0 {
            return Ok((beside, pages.into_iter().rev().flatten().collect()));
        }
    }
}

/// Prints a message and the failed run after it.
pub(crate) fn show_entry(screen: &mut Screen, entry: &HistoryEntry) -> io::Result<()> {
    show_message(screen, entry)?;
    if entry.rewound_to.is_some() && !entry.compact {
        screen.line("--- rewound to an earlier message")?;
    }
    match &entry.failed {
        Some(run) => screen.line(&format!("--- run {}: {}", run.run, summary(&run.error))),
        None => Ok(()),
    }
}

fn show_message(screen: &mut Screen, entry: &HistoryEntry) -> io::Result<()> {
    if entry.compact && entry.rewound_to.is_some() {
        return screen.line("--- an archive was resumed");
    }
    if entry.compact && entry.content.is_empty() {
        return screen.line("--- older messages are archived");
    }
    if entry.compact {
        return screen.line(&format!("--- older messages: {}", summary(&entry.content)));
    }
    let mut images = entry.images.iter();
    if entry.role == "tool" {
        screen.line(&format!("    < {}", summary(&entry.content)))?;
        return images.try_for_each(|image| screen.line(&format!("      {}", image_note(image))));
    }
    if !entry.content.trim().is_empty() {
        let speaker = match entry.agent.as_str() {
            "" => entry.role.as_str(),
            agent => agent,
        };
        screen.line(&format!("{speaker}> {}", entry.content.trim_end()))?;
    }
    images.try_for_each(|image| screen.line(&format!("    {}", image_note(image))))?;
    entry.tool_calls.iter().try_for_each(|call| {
        if let Some(list) = todo_list(call) {
            screen.line(&format!("    > {} {}", call.name, list.count()))?;
            return list
                .plain()
                .try_for_each(|item| screen.line(&format!("      {item}")));
        }
        screen.line(&format!(
            "    > {} {}",
            call.name,
            call_summary(&call.arguments)
        ))
    })
}

/// The list in a `todo` call.
fn todo_list(call: &ToolCallInfo) -> Option<Todo> {
    let list = Todo::parse(&call.arguments)?;
    (call.name == todo::TOOL).then_some(list)
}

/// Writes an export to a new file, completely or not at all; a kill leaves an empty file.
pub(crate) fn write_new(file: &Path, text: &str) -> io::Result<()> {
    // The file is created first, since not every file system supports renaming without replacing.
    drop(File::create_new(file)?);
    let written = crabtalk_files::write(file, text.as_bytes(), Existing::Replace);
    if written.is_err() {
        // Removes the file, so that a retry succeeds.
        let _ = std::fs::remove_file(file);
    }
    written
}

/// A message as Markdown, for a file.
pub(crate) fn markdown(entry: &HistoryEntry) -> String {
    let who = match (entry.compact, entry.role.as_str(), entry.agent.as_str()) {
        (true, ..) => "summary of older messages",
        (_, role, "") => role,
        (.., agent) => agent,
    };
    let mut text = format!("## {who}\n\n");
    if !entry.timestamp.is_empty() {
        text.push_str(&format!("<!-- {} -->\n\n", entry.timestamp));
    }
    if entry.role == "tool" {
        // The fence is longer than those in the text.
        let longest = entry.content.split(|c| c != '`').map(str::len).max();
        let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
        text.push_str(&format!("{fence}\n{}\n{fence}\n", entry.content.trim_end()));
    } else if !entry.content.trim().is_empty() {
        text.push_str(entry.content.trim_end());
        text.push('\n');
    }
    for image in &entry.images {
        text.push_str(&format!("\n{}\n", image_note(image)));
    }
    for call in &entry.tool_calls {
        if let Some(list) = todo_list(call) {
            let items = list.markdown();
            text.push_str(&format!("\n- `{}` {}\n{items}", call.name, list.count()));
            continue;
        }
        text.push_str(&format!(
            "\n- `{}` {}\n",
            call.name,
            call_summary(&call.arguments)
        ));
    }
    if let Some(run) = &entry.failed {
        text.push_str(&format!("\n*Run {}: {}*\n", run.run, summary(&run.error)));
    }
    text
}
