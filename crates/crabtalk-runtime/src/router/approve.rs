//! Asks a person about a call whose verdict is `ask` (GATE-4).

use super::case::Case;
use super::verdict::{authority, may_read, offered_prefix};
use super::{CallContext, shown};
use crate::asks::{Answer, Answered, PendingAsk};
use crate::error::with_source;
use crabtalk_domain::storage::{self, MetaRecord, Record};
use crabtalk_domain::tool::{Preview, Subject};
use crabtalk_domain::{AgentEvent, Ask, AskOutcome, AskRule, BoxFuture};
use crabtalk_gate::Verdict;
use std::sync::{Arc, MutexGuard};

/// The people that a stranger's run waits for.
const WAITS_FOR: &str = "an owner";

/// Asks for approval; returns the preview that was shown.
pub(super) async fn ask(
    context: &CallContext,
    case: &Case<'_>,
    verdict: &Verdict,
) -> Result<Option<Preview>, String> {
    let preview = match case.provider {
        Some(provider) => provider.preview(case.call, case.subject).await,
        None => Ok(None),
    };
    let (preview, failed) = match preview {
        Ok(preview) => (preview, None),
        // The reason may reveal the file's content: return it only to runs that
        // may read the file.
        Err(why) if may_read(context, case).await => return Err(why),
        Err(why) => (None, Some(why)),
    };
    let mut always = if failed.is_none() {
        rule(context, case, verdict, preview.as_ref())
    } else {
        None
    };
    if let Some(rule) = &mut always {
        let prefix = offered_prefix(context, case).await;
        rule.prefix = prefix.unwrap_or_default();
    }
    let names_outcome = matches!(case.subject, Subject::Path { .. });
    let kept = || always.as_ref().is_some_and(|rule| is_kept(context, rule));
    if preview.is_some() && names_outcome && kept() {
        return Ok(preview);
    }
    let ask = Arc::new(shown::approval(
        context, case, verdict, preview, &failed, always,
    )?);
    let answered = answer(context, case, &ask);
    let answer = context.pauses.pause(&case.call.call_id, answered).await?;
    match (answer, failed) {
        (Answer::Deny(reason), _) if reason.is_empty() => Err("denied by the user".into()),
        (Answer::Deny(reason), _) => Err(format!("denied by the user: {reason}")),
        (Answer::Questions(_), _) => Err("denied: the approval was withdrawn".into()),
        (_, Some(why)) => Err(why),
        (answer, None) => {
            if let (Answer::AllowConversation, Subject::Command(command)) = (answer, case.subject) {
                let hosts = &command.access.hosts;
                context.rt.hosts.add(context.audience.key(), hosts);
            }
            note_begun(context, &case.call.call_id).await?;
            Ok(ask.preview.clone())
        }
    }
}

/// Shows an ask and waits for the answer.
async fn answer(context: &CallContext, case: &Case<'_>, ask: &Arc<Ask>) -> Result<Answer, String> {
    let rt = &context.rt;
    // Strangers' streams do not show the ask, so that only owners answer.
    let inbox = !context.standing.is_owner;
    let pending = PendingAsk {
        key: context.audience.key().clone(),
        ask: Arc::clone(ask),
        asked_at: rt.now(),
        inbox,
    };
    let log = (!inbox).then(|| Arc::clone(context.audience.log()));
    let mut wait = rt.asks.open(pending, log);
    note_waiting(context, &case.call.call_id).await?;
    let audience = Arc::clone(&context.audience);
    let answered = if inbox {
        let timeout = rt.catalog.load().limits.ask_timeout;
        wait.show(move |event| audience.publish_to_watchers(&event));
        // The sender's stream shows that the run waits, but not the ask.
        context.audience.publish_to_readers(AgentEvent::Waiting {
            whom: WAITS_FOR.into(),
            timeout_secs: timeout.as_secs(),
        });
        match wait.answered_within(timeout).await {
            Ok(answered) => Some(answered),
            Err(AskOutcome::TimedOut) => {
                return Err("denied: the approval was not answered in time".into());
            }
            Err(AskOutcome::Withdrawn | AskOutcome::Answered { .. }) => None,
        }
    } else {
        // An owner's ask has no time limit.
        wait.show(move |event| audience.publish(event));
        wait.answered().await
    };
    let Some(Answered { answer, by }) = answered else {
        return Err("denied: the approval was withdrawn".into());
    };
    tracing::info!(
        target: "security",
        agent = %context.agent.name,
        sender = %context.key.sender,
        tool = %case.call.name,
        ask = %ask.id,
        by = %by,
        answer = answer.name(),
        "an approval was answered"
    );
    Ok(answer)
}

/// Whether a stored approval covers this call.
fn is_kept(context: &CallContext, rule: &AskRule) -> bool {
    let kept = context.rt.toolbox.approvals.list();
    kept.iter().any(|kept| kept.covers(rule))
}

/// The rule that "Allow always" stores: exactly this call, or exactly this result of a
/// change. `None` if no text describes it.
fn rule(
    context: &CallContext,
    case: &Case<'_>,
    verdict: &Verdict,
    preview: Option<&Preview>,
) -> Option<AskRule> {
    let exact = match (case.subject, preview) {
        (Subject::Path { path, write: true }, Some(preview)) => {
            path.to_str()?;
            preview.exact.clone()
        }
        // Without a preview the resulting file is unknown.
        (Subject::Path { write: true, .. }, None) => return None,
        (Subject::Path { path, .. }, _) => path.to_str()?.to_owned(),
        (Subject::Command(command), _) if command.access.is_wide() => return None,
        (Subject::Command(_) | Subject::Other, _) => verdict.detail.clone(),
    };
    Some(AskRule {
        agent: context.agent.name.to_string(),
        sender: authority(context),
        tool: case.call.name.clone(),
        exact,
        cwd: case.call.cwd.to_str()?.to_owned(),
        prefix: String::new(),
    })
}

/// Records that a call has not begun, for a restart.
async fn note_waiting(context: &CallContext, call_id: &str) -> Result<(), String> {
    let waiting = {
        let mut waiting = waiting(context);
        waiting.push(call_id.to_owned());
        waiting.clone()
    };
    append_waiting(context, waiting).await.map(drop)
}

/// Removes that record on disk before the call begins: from here on, its effect is
/// unknown after a crash.
async fn note_begun(context: &CallContext, call_id: &str) -> Result<(), String> {
    let waiting = {
        let mut waiting = waiting(context);
        waiting.retain(|id| id != call_id);
        waiting.clone()
    };
    let synced = append_waiting(context, waiting).await?;
    synced.await.map_err(|e| with_source(&e))
}

fn waiting(context: &CallContext) -> MutexGuard<'_, Vec<String>> {
    let waiting = context.waiting.lock();
    waiting.expect("no code panics while it holds the waiting calls")
}

type Synced = BoxFuture<'static, Result<(), storage::Error>>;

async fn append_waiting(context: &CallContext, waiting: Vec<String>) -> Result<Synced, String> {
    let Some(shared) = context.rt.registry.get(&context.key) else {
        return Err("the conversation is gone".into());
    };
    let record = MetaRecord {
        waiting: Some(waiting),
        ..MetaRecord::default()
    };
    let appended = shared.append(&[Record::Meta(record)]).await;
    let position = appended.map_err(|e| with_source(&e))?;
    Ok(shared.synced(position))
}
