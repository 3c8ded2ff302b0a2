//! `approvals`: permanent approvals.

use super::Context;
use crate::args::Approvals;
use crate::error::Error;
use crate::text::summary;
use crabtalk_proto::{ApprovalInfo, ListApprovalsMsg, RemoveApprovalMsg, visible};
use serde_json::json;

pub(super) async fn run(context: &mut Context, command: Approvals) -> Result<(), Error> {
    match command {
        Approvals::List => list(context).await,
        Approvals::Rm { index } => remove(context, index).await,
    }
}

async fn listed(context: &mut Context) -> Result<Vec<ApprovalInfo>, Error> {
    let request = ListApprovalsMsg {
        agent: context.global.agent.clone(),
        sender: Some(context.named_sender()).filter(|sender| !sender.is_empty()),
    };
    let listed = context.call(request).await?;
    Ok(listed.approvals)
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let approvals = listed(context).await?;
    let words = |context: &Context, one: &ApprovalInfo| entry(one, &context.when(&one.at));
    context.entries(&approvals, words, "no permanent approvals")
}

/// Formats an approval in full.
fn entry(approval: &ApprovalInfo, since: &str) -> String {
    let mut text = format!(
        "{}  {} by {} for {} in {}, since {}, approved by {}",
        approval.index,
        visible(&approval.tool),
        visible(&approval.agent),
        visible(&approval.sender),
        visible(&approval.cwd),
        visible(since),
        visible(&approval.by),
    );
    for line in visible(&approval.exact).lines() {
        text.push_str("\n    ");
        text.push_str(line);
    }
    if !approval.prefix.is_empty() {
        text.push_str(" (and longer commands that begin like it)");
    }
    text
}

async fn remove(context: &mut Context, index: u32) -> Result<(), Error> {
    let approvals = listed(context).await?;
    let Some(found) = approvals.into_iter().find(|a| a.index == index) else {
        return Err(Error::Failed(format!(
            "no approval {index}; see `crabtalk approvals`"
        )));
    };
    let request = RemoveApprovalMsg {
        index,
        // Detects that the list changed.
        exact: Some(found.exact.clone()),
    };
    context.call(request).await?;
    let said = format!(
        "crabtalk: {} {} needs an approval again",
        found.tool,
        summary(&found.exact)
    );
    context.done(json!({"removed": index}), &said)
}
