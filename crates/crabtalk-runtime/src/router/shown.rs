//! The content of an approval, which shows everything that it allows (GATE-4).
//!
//! Invariant: a call that cannot be shown completely is denied without asking.

use super::CallContext;
use super::case::Case;
use crate::asks::FOR_CONVERSATION;
use crabtalk_domain::tool::{Preview, PreviewKind, Subject};
use crabtalk_domain::{Ask, AskKind, AskOption, AskQuestion, AskRule};
use crabtalk_gate::Verdict;
use std::fmt::Write as _;

/// Maximum bytes of an approval: ten thousand lines, far below the size of a
/// message.
const MAX_SHOWN_BYTES: usize = 512 * 1024;

/// Makes the ask for a call, or refuses one that is too large to show.
pub(super) fn approval(
    context: &CallContext,
    case: &Case<'_>,
    verdict: &Verdict,
    preview: Option<Preview>,
    failed: &Option<String>,
    always: Option<AskRule>,
) -> Result<Ask, String> {
    let call = case.call;
    let shown = preview.as_ref().map_or(0, |preview| preview.text.len());
    let bytes = verdict.detail.len() + shown;
    if bytes > MAX_SHOWN_BYTES {
        return Err(format!(
            "denied: the call needs an approval, and its {bytes} bytes are too many to show (the \
             limit is {MAX_SHOWN_BYTES}): split it, or let the owner allow it by a rule"
        ));
    }
    let mut reason = verdict.reason.clone();
    if let Some(preview) = preview.as_ref().filter(|preview| !preview.note.is_empty()) {
        let _ = write!(reason, "; {}", preview.note);
    }
    if let Some(why) = failed {
        let _ = write!(reason, "; the call would fail: {why}");
    }
    let name = context.agent.name.to_string();
    let cwd = call.cwd.to_string_lossy().into_owned();
    Ok(Ask {
        id: context.rt.asks.new_id(),
        kind: AskKind::Approval,
        questions: vec![AskQuestion {
            question: question(&name, &call.name, &verdict.detail, preview.as_ref()),
            header: "Approval".into(),
            options: options(always.as_ref(), grants_hosts(case)),
            multi_select: false,
        }],
        tool: call.name.clone(),
        detail: verdict.detail.clone(),
        preview,
        cwd,
        reason,
        always,
        outside: matches!(case.subject, Subject::Command(command) if command.access.outside),
        delegate: context.delegate(),
    })
}

/// The whole ask as one text, for clients without a separate display.
fn question(agent: &str, tool: &str, detail: &str, preview: Option<&Preview>) -> String {
    let mut text = match detail.lines().count() {
        0 | 1 => format!("Allow {agent} to run {tool}: {detail}"),
        lines => format!("Allow {agent} to run {tool} ({lines} lines):\n{detail}"),
    };
    if let Some(preview) = preview {
        let what = match preview.kind {
            PreviewKind::Diff => "the change",
            PreviewKind::Content => "the content",
        };
        let lines = preview.text.lines().count();
        let _ = write!(text, "\n{what} ({lines} lines):\n{}", preview.text);
    }
    text
}

/// Whether "Allow for this conversation" is offered: only hosts are requested.
fn grants_hosts(case: &Case<'_>) -> bool {
    let Subject::Command(command) = case.subject else {
        return false;
    };
    let access = &command.access;
    !access.hosts.is_empty() && !access.outside && access.write.is_empty()
}

fn options(always: Option<&AskRule>, grants_hosts: bool) -> Vec<AskOption> {
    let option = |label: &str, description: String| AskOption {
        label: label.into(),
        description,
    };
    let mut options = vec![option("Allow once", "this call only".into())];
    if let Some(rule) = always {
        let description = format!(
            "exactly this call, by {} for {} in {}, without asking",
            rule.agent, rule.sender, rule.cwd
        );
        options.push(option("Allow always", description));
    }
    if grants_hosts {
        let description = "these hosts, for every command of this conversation";
        options.push(option(FOR_CONVERSATION, description.into()));
    }
    let description = "refuse; \"Deny: reason\" tells the agent why";
    options.push(option("Deny", description.into()));
    if let Some(rule) = always.filter(|rule| !rule.prefix.is_empty()) {
        let description = format!(
            "any `{} ..` command in the sandbox, by {} for {} in {}, without asking",
            rule.prefix, rule.agent, rule.sender, rule.cwd
        );
        options.push(option("Allow prefix", description));
    }
    options
}
