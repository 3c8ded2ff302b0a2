//! Determines the permission of a call, and asks a person if necessary (GATE-2).

use super::case::Case;
use super::verdict::{by_prefix, judged_by, prefixes};
use super::{CallContext, approve};
use crabtalk_domain::tool::{Preview, Subject};
use crabtalk_domain::{Mode, Permission};
use crabtalk_gate::Verdict;

/// An allowed call.
pub(super) struct Permitted {
    /// The judged subject, with which the tool must be called.
    pub(super) subject: Subject,
    /// The preview that a person approved.
    pub(super) shown: Option<Preview>,
}

/// Allows a call with the judged subject, or returns the refusal.
pub(super) async fn permit(context: &CallContext, case: Case<'_>) -> Result<Permitted, String> {
    let call = case.call;
    let standing = context.standing;
    let mut verdict = judged_by(context, &case, &context.agent.permissions, standing).await;
    let news = case.provider.and_then(|provider| provider.is_news(call));
    if let Some(why) = news.filter(|_| verdict.permission == Permission::Allow) {
        verdict.permission = match standing.unattended {
            true => Permission::Deny,
            false => Permission::Ask,
        };
        verdict.reason = why;
        return decide(context, case, verdict).await;
    }
    if verdict.permission == Permission::Ask
        && standing.is_owner
        && let Some(lifted) = lifted(context, &case).await
    {
        return decide(context, case, lifted).await;
    }
    decide(context, case, verdict).await
}

/// The verdict with the rules of trusted skills and stored prefixes, if they allow the
/// call. They apply only inside the sandbox and below the folder.
async fn lifted(context: &CallContext, case: &Case<'_>) -> Option<Verdict> {
    let is_inside = match case.subject {
        Subject::Command(command) => !command.access.is_wide(),
        Subject::Path { path, write } => !write || path.starts_with(&case.call.cwd),
        Subject::Other => true,
    };
    if !is_inside || context.mode == Mode::Full {
        return None;
    }
    let preapproved = context.rt.toolbox.approvals.preapproved(case.call).await;
    if !preapproved.is_empty() {
        let lifted = judged_by(context, case, &preapproved, context.standing).await;
        let is_news = case
            .provider
            .and_then(|provider| provider.is_news(case.call));
        if lifted.permission == Permission::Allow && is_news.is_none() {
            return Some(lifted);
        }
    }
    by_prefix(context, case, prefixes(context, case)).await
}

/// Applies a verdict.
async fn decide(
    context: &CallContext,
    case: Case<'_>,
    verdict: Verdict,
) -> Result<Permitted, String> {
    let call = case.call;
    match verdict.permission {
        Permission::Allow => Ok(Permitted {
            subject: verdict.subject,
            shown: None,
        }),
        Permission::Deny => {
            tracing::warn!(
                target: "security",
                agent = %context.agent.name,
                sender = %context.key.sender,
                origin = %context.origin,
                tool = %call.name,
                what = %logged(&verdict.detail),
                reason = %verdict.reason,
                "a tool call was denied"
            );
            Err(format!("denied: {}", verdict.reason))
        }
        Permission::Ask => {
            let shown = approve::ask(context, &case, &verdict).await?;
            Ok(Permitted {
                subject: verdict.subject,
                shown,
            })
        }
    }
}

/// The detail of a call, shortened for the log.
fn logged(detail: &str) -> String {
    /// The conversation has the whole text.
    const MAX_CHARS: usize = 200;
    detail.chars().take(MAX_CHARS).collect()
}
