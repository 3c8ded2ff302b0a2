//! Permission: what may pass as the rules have it, and whom to ask where they say `ask`
//! (GATE-2).

use super::case::Case;
use super::verdict::{by_prefix, judged_by, prefixes};
use super::{CallContext, approve};
use crate::gate::Verdict;
use crabtalk_domain::Permission;
use crabtalk_domain::tool::{Preview, Subject};

/// A call that may pass.
pub(super) struct Permitted {
    /// What was judged, and is opened or run.
    pub(super) subject: Subject,
    /// What was shown of it to whoever allowed it.
    pub(super) shown: Option<Preview>,
}

/// Lets a call pass, or says why not. What passes is the subject that
/// was judged: of a command that a narrow rule allows, the print of its
/// words. With it goes what was shown of the call to whoever allowed it.
pub(super) async fn permit(context: &CallContext, case: Case<'_>) -> Result<Permitted, String> {
    let call = case.call;
    let rules = &context.agent.permissions;
    let standing = context.standing;
    let mut verdict = judged_by(context, &case, rules, standing).await;
    let news = case.provider.and_then(|provider| provider.is_news(call));
    if let Some(why) = news.filter(|_| verdict.permission == Permission::Allow) {
        verdict.permission = match standing.unattended {
            true => Permission::Deny,
            false => Permission::Ask,
        };
        verdict.reason = why;
        return decide(context, case, verdict).await;
    }
    // A trusted skill speaks for an owner, never for whoever calls it.
    if verdict.permission == Permission::Ask && standing.is_owner {
        let preapproved = context.rt.toolbox.approvals.preapproved(call).await;
        if !preapproved.is_empty() {
            let lifted = judged_by(context, &case, &preapproved, standing).await;
            let is_news = case.provider.and_then(|provider| provider.is_news(call));
            if lifted.permission == Permission::Allow && is_news.is_none() {
                return Ok(judged(context, &case, lifted));
            }
        }
        let prefixes = prefixes(context, &case);
        if let Some(lifted) = by_prefix(context, &case, prefixes).await {
            return Ok(judged(context, &case, lifted));
        }
    }
    decide(context, case, verdict).await
}

/// Acts on a verdict.
async fn decide(
    context: &CallContext,
    case: Case<'_>,
    verdict: Verdict,
) -> Result<Permitted, String> {
    let call = case.call;
    match verdict.permission {
        Permission::Allow => Ok(judged(context, &case, verdict)),
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
        Permission::Ask => Ok(Permitted {
            shown: approve::ask(context, &case, &verdict).await?,
            subject: case.subject.clone(),
        }),
    }
}

/// The subject that a rule allowed; nothing was shown of it.
fn judged(context: &CallContext, case: &Case<'_>, verdict: Verdict) -> Permitted {
    let subject = match verdict.run {
        None => case.subject.clone(),
        Some(command) => {
            tracing::info!(
                agent = %context.agent.name,
                sender = %context.key.sender,
                what = %logged(&command.text),
                reason = %verdict.reason,
                "a command runs by a rule"
            );
            Subject::Command(command)
        }
    };
    Permitted {
        subject,
        shown: None,
    }
}

/// What a call would do, short enough for a line of the log.
fn logged(detail: &str) -> String {
    /// The whole stands in the conversation.
    const MAX_CHARS: usize = 200;
    detail.chars().take(MAX_CHARS).collect()
}
