//! `kill`, `steer`, `compact`: words to a run in flight or its history.

use super::Context;
use crate::error::Error;
use crabtalk_proto::{Client, CompactMsg, KillMsg, SteerSessionMsg};
use serde_json::json;

pub(super) async fn kill(context: &mut Context) -> Result<(), Error> {
    let request = KillMsg {
        agent: context.agent(),
        sender: context.sender(),
    };
    context.connection().await?.kill(request).await?;
    context.done(json!({"killed": true}), "crabtalk: the run was cancelled")
}

pub(super) async fn steer(context: &mut Context, content: String) -> Result<(), Error> {
    let request = SteerSessionMsg {
        agent: context.agent(),
        sender: context.sender(),
        content,
    };
    context.connection().await?.steer_session(request).await?;
    context.done(
        json!({"steered": true}),
        "crabtalk: the run reads it at its next step",
    )
}

pub(super) async fn compact(context: &mut Context, focus: Option<String>) -> Result<(), Error> {
    let request = CompactMsg {
        agent: context.agent(),
        sender: context.sender(),
        focus,
    };
    let answer = context.connection().await?.compact(request).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&json!({"summary": answer.summary}))?);
    }
    Ok(screen.line(&answer.summary)?)
}
