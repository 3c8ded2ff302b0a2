//! `kill`, `steer`, `compact`, `new`: act on the current run or its history.

use super::Context;
use crate::error::Error;
use crabtalk_proto::{CompactMsg, KillMsg, SteerSessionMsg};
use serde_json::json;

pub(super) async fn kill(context: &mut Context) -> Result<(), Error> {
    let request = KillMsg {
        agent: context.agent(),
        sender: context.sender(),
    };
    context.call(request).await?;
    context.done(json!({"killed": true}), "crabtalk: the run was cancelled")
}

pub(super) async fn steer(context: &mut Context, content: String) -> Result<(), Error> {
    let request = SteerSessionMsg {
        agent: context.agent(),
        sender: context.sender(),
        content,
    };
    context.call(request).await?;
    context.done(
        json!({"steered": true}),
        "crabtalk: the run will read it at its next step",
    )
}

pub(super) async fn compact(context: &mut Context, focus: Option<String>) -> Result<(), Error> {
    let request = CompactMsg {
        agent: context.agent(),
        sender: context.sender(),
        focus,
        fresh: false,
    };
    let answer = context.call(request).await?;
    context.print(&json!({"summary": answer.summary}), &answer.summary)
}

/// Archives the history without asking a model for a summary (CONV-11).
pub(super) async fn start_fresh(context: &mut Context) -> Result<(), Error> {
    let request = CompactMsg {
        agent: context.agent(),
        sender: context.sender(),
        fresh: true,
        ..CompactMsg::default()
    };
    let answer = context.call(request).await?;
    let said = match answer.title.as_str() {
        "" => "crabtalk: nothing to archive: the history is empty".to_owned(),
        title => format!(
            "crabtalk: archived as \"{title}\"; `crabtalk archives` lists it, `crabtalk search` searches it"
        ),
    };
    context.done(json!({"archive": answer.title}), &said)
}
