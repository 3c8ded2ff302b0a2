//! Messages as JSON, for scripts (`--json`).
//!
//! Names and values come from `crabtalk-proto`, but images are reduced to their size,
//! and unknown events have a `type`.

use crabtalk_proto::{
    ActiveConversationInfo, ConversationInfo, DaemonStats, Image, MemoryEntry, ProviderInfo,
    StreamEvent,
};
use serde::Serialize;
use serde_json::{Value, json};

/// A message as an object.
pub(crate) fn of(message: &impl Serialize) -> Value {
    // Keys are strings, so this cannot fail.
    serde_json::to_value(message).unwrap_or_default()
}

/// An event of a run.
pub(crate) fn stream_event(event: &StreamEvent) -> Value {
    use crabtalk_proto::stream_event::Event;
    let mut value = of(event);
    match &event.event {
        Some(Event::ToolResult(result)) => value["images"] = images(&result.images),
        // An event of a newer daemon.
        None => value["type"] = "unknown".into(),
        Some(_) => {}
    }
    value
}

/// A message of a history.
pub(crate) fn history_entry(entry: &crabtalk_proto::HistoryEntry) -> Value {
    let mut value = of(entry);
    value["images"] = images(&entry.images);
    value
}

/// Type and size of images, without their bytes.
fn images(images: &[Image]) -> Value {
    let images = images.iter();
    images
        .map(|image| json!({"media_type": image.media_type, "bytes": image.data.len()}))
        .collect()
}

/// A conversation and whether it runs.
pub(crate) fn conversation(
    info: &ConversationInfo,
    active: Option<&ActiveConversationInfo>,
) -> Value {
    let mut value = of(info);
    value["running"] = active.is_some_and(|active| active.running).into();
    value["queued"] = active.map_or(0, |active| active.queued).into();
    value["context_used"] = active.and_then(|active| active.context_used).into();
    value["context_window"] = active.and_then(|active| active.context_window).into();
    value
}

/// A memory entry without its content.
pub(crate) fn memory_info(entry: &MemoryEntry) -> Value {
    let mut value = of(entry);
    remove(&mut value, |name, _| name == "content");
    value
}

/// The daemon's figures; spending rows have only the fields of their group.
pub(crate) fn stats(stats: &DaemonStats) -> Value {
    let mut value = of(stats);
    let rows = value["spending"].as_array_mut();
    for row in rows.into_iter().flatten() {
        let is_of_run = row["run"] != 0;
        remove(row, |name, value| match name {
            "run" | "code" => !is_of_run,
            _ => value.is_null() || value.as_str().is_some_and(str::is_empty),
        });
    }
    value
}

/// A provider with its settings as an object.
pub(crate) fn provider(provider: &ProviderInfo, config: Value) -> Value {
    let mut value = of(provider);
    value["config"] = config;
    value
}

fn remove(value: &mut Value, is_unwanted: impl Fn(&str, &Value) -> bool) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, value| !is_unwanted(name, value));
    }
}

#[cfg(test)]
mod tests;
