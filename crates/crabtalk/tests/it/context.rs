//! Compaction, archives, memory, skills and project instructions.

mod long;
mod memory;
mod project;
mod senders;
mod skills;
mod trust;
mod week;

use crate::rig::{TestEnv, end_of, stream_to_end};
use crabtalk_proto::StreamMsg;
use crabtalk_testkit::scripted::{Reply, Script, openai};
use serde_json::Value;

/// A part of the request to summarise a history.
const SUMMARISE: &str = "answer with the summary alone";

/// A model that always returns the same summary.
fn summarising(replies: impl IntoIterator<Item = Reply>, summary: &str) -> Script {
    Script::openai(replies).when(SUMMARISE, openai::text(summary))
}

/// A message of a sender, in the work folder.
fn message(env: &TestEnv, sender: &str, content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        sender: Some(sender.into()),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

/// Sends a message, whose run must succeed.
async fn say(env: &TestEnv, sender: &str, content: &str) {
    let events = stream_to_end(env, message(env, sender, content)).await;
    let end = end_of(&events);
    assert_eq!(end.code, 0, "{end:?}");
}

/// The texts of a request's messages.
fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    messages
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect()
}

/// All text that a request sends to the model.
fn told(request: &Value) -> String {
    texts(request).join("\n")
}

/// The `<recall>` block of a request; there is at most one.
fn recall(request: &Value) -> Option<String> {
    let told = told(request);
    let mut blocks = told.split("<recall>\n").skip(1);
    let block = blocks.next()?.split_once("\n</recall>").unwrap().0;
    assert!(blocks.next().is_none(), "two blocks: {told}");
    Some(block.to_owned())
}
