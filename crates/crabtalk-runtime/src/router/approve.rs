//! Permission, and the question to a person where the rules say `ask`
//! (GATE-2, GATE-4).

use super::case::Case;
use super::{CallContext, Router, shown};
use crate::asks::{Answer, Answered, PendingAsk};
use crate::error::with_source;
use crate::gate::approvals::Wanted;
use crate::gate::{Approval, Disk, Question, Standing, Verdict, disk, judge, prefix};
use crabtalk_domain::storage::{self, MetaRecord, Record};
use crabtalk_domain::tool::{Invocation, Preview, Reach, Subject};
use crabtalk_domain::{
    AgentEvent, Ask, AskOutcome, AskRule, BoxFuture, Origin, Permission, PermissionRule, Principal,
    Sender,
};
use std::future::ready;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

/// Calls that somebody approved for good (`config/approvals.toml`).
pub trait ApprovalBook: Send + Sync {
    /// What is approved now.
    fn list(&self) -> Arc<Vec<Approval>>;

    /// Keeps an approval; it is on disk when this returns. The error says what
    /// happened to which file.
    fn add(&self, approval: Approval) -> BoxFuture<'_, Result<(), String>>;

    /// Rules that lift an `ask` for this call, for instance those of a trusted
    /// skill that its run uses (SKILL-2). They never lift a `deny`.
    fn preapproved<'a>(&'a self, _call: &'a Invocation) -> BoxFuture<'a, Vec<PermissionRule>> {
        Box::pin(ready(Vec::new()))
    }
}

impl ApprovalBook for () {
    fn list(&self) -> Arc<Vec<Approval>> {
        Arc::default()
    }

    fn add(&self, _: Approval) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(ready(Err("this runtime keeps no approvals".into())))
    }
}

/// For whom the run of somebody who is no owner waits.
const WAITS_FOR: &str = "an owner";

/// A call that may pass.
pub(super) struct Permitted {
    /// What was judged, and is opened or run.
    pub(super) subject: Subject,
    /// What was shown of it to whoever allowed it.
    pub(super) shown: Option<Preview>,
}

impl Router {
    /// Lets a call pass, or says why not. What passes is the subject that
    /// was judged: of a command that a narrow rule allows, the print of its
    /// words. With it goes what was shown of the call to whoever allowed it.
    pub(super) async fn permit(
        &self,
        context: &CallContext,
        case: Case<'_>,
    ) -> Result<Permitted, String> {
        let call = case.call;
        let rules = &context.agent.permissions;
        let standing = context.standing;
        let mut verdict = self.judge(context, &case, rules, standing).await;
        let news = case.provider.and_then(|provider| provider.is_news(call));
        if let Some(why) = news.filter(|_| verdict.permission == Permission::Allow) {
            verdict.permission = match standing.unattended {
                true => Permission::Deny,
                false => Permission::Ask,
            };
            verdict.reason = why;
            return self.decide(context, case, verdict).await;
        }
        // A trusted skill speaks for an owner, never for whoever calls it.
        if verdict.permission == Permission::Ask && standing.is_owner {
            let preapproved = self.approvals.preapproved(call).await;
            if !preapproved.is_empty() {
                let lifted = self.judge(context, &case, &preapproved, standing).await;
                let is_news = case.provider.and_then(|provider| provider.is_news(call));
                if lifted.permission == Permission::Allow && is_news.is_none() {
                    return Ok(judged(context, &case, lifted));
                }
            }
            let prefixes = self.prefixes(context, &case);
            if let Some(lifted) = self.by_prefix(context, &case, prefixes).await {
                return Ok(judged(context, &case, lifted));
            }
        }
        self.decide(context, case, verdict).await
    }

    /// The rules of the beginnings of commands that were allowed for good.
    fn prefixes(&self, context: &CallContext, case: &Case<'_>) -> Vec<PermissionRule> {
        let Some(cwd) = case.call.cwd.to_str() else {
            return Vec::new();
        };
        // What is there for whoever can be asked counts for nobody else.
        if context.standing.unattended {
            return Vec::new();
        }
        let sender = authority(context);
        let agent = context.agent.name.as_str();
        prefix::allowed(&self.approvals.list(), agent, sender.as_str(), cwd)
    }

    /// What rules of beginnings say beside those of the agent's file: where that
    /// asks for such a command by a pattern, it still asks.
    async fn by_prefix(
        &self,
        context: &CallContext,
        case: &Case<'_>,
        prefixes: Vec<PermissionRule>,
    ) -> Option<Verdict> {
        if prefixes.is_empty() || !matches!(case.subject, Subject::Command(_)) {
            return None;
        }
        let own = context.agent.permissions.iter().cloned();
        let rules: Vec<PermissionRule> = own.chain(prefixes).collect();
        let lifted = self.judge(context, case, &rules, context.standing).await;
        (lifted.permission == Permission::Allow).then_some(lifted)
    }

    /// The beginning that "Allow prefix" would keep, if it would allow this call.
    async fn offered_prefix(&self, context: &CallContext, case: &Case<'_>) -> Option<String> {
        let Subject::Command(command) = case.subject else {
            return None;
        };
        if !context.standing.is_owner || context.standing.unattended {
            return None;
        }
        let prefix = prefix::prefix_of(&command.text)?;
        let rules = prefix::rules(&prefix).to_vec();
        self.by_prefix(context, case, rules).await?;
        Some(prefix)
    }

    /// Acts on a verdict.
    async fn decide(
        &self,
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
                shown: self.ask(context, &case, &verdict).await?,
                subject: case.subject.clone(),
            }),
        }
    }

    /// Asks the rules. Off this thread, since links on a slow disk may have
    /// to be followed.
    async fn judge(
        &self,
        context: &CallContext,
        case: &Case<'_>,
        rules: &[PermissionRule],
        standing: Standing,
    ) -> Verdict {
        let user_home = context.rt.catalog.load().user_home.clone();
        // What is there for whoever can be asked counts for nobody else.
        let approvals = if context.standing.unattended {
            Arc::default()
        } else {
            self.approvals.list()
        };
        let of = context.key.to_string();
        let (provider, call) = (case.provider.cloned(), case.call.clone());
        let (agent, rules) = (Arc::clone(&context.agent), rules.to_vec());
        let (tool, cwd) = (case.call.name.clone(), case.call.cwd.clone());
        let (subject, arguments) = (case.subject.clone(), case.arguments.to_owned());
        let sender = authority(context).to_string();
        let default_permission = case.spec.default_permission;
        let judged = move |disk: &dyn Disk| {
            let is_own = provider
                .as_ref()
                .is_some_and(|provider| provider.is_own(&call, &subject));
            let reach = |path: &Path| match &provider {
                Some(provider) => provider.reach(&call, path),
                None => Reach::Open,
            };
            judge(&Question {
                agent: agent.name.as_str(),
                sender: &sender,
                tool: &tool,
                arguments: &arguments,
                subject: &subject,
                default_permission,
                rules: &rules,
                approvals: &approvals,
                cwd: &cwd,
                agent_cwd: agent.cwd.as_deref(),
                user_home: user_home.as_deref(),
                standing,
                is_own,
                disk,
                reach: &reach,
            })
        };
        let verdict = disk::ask(&self.disk(), &of, judged).await;
        verdict.unwrap_or_else(|why| Verdict {
            permission: Permission::Deny,
            reason: format!("the call could not be judged: {why}"),
            detail: String::new(),
            run: None,
        })
    }

    /// Asks whoever may answer; gives what they were shown.
    async fn ask(
        &self,
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
            // What may be read may be told of; of the rest nobody learns
            // anything before it was allowed.
            Err(why) if self.may_read(context, case).await => return Err(why),
            Err(why) => (None, Some(why)),
        };
        let mut always = if failed.is_none() {
            rule(context, case, verdict, preview.as_ref())
        } else {
            None
        };
        if let Some(rule) = &mut always {
            let prefix = self.offered_prefix(context, case).await;
            rule.prefix = prefix.unwrap_or_default();
        }
        let names_outcome = matches!(case.subject, Subject::Path { .. });
        let kept = || always.as_ref().is_some_and(|rule| self.is_kept(rule));
        if preview.is_some() && names_outcome && kept() {
            return Ok(preview);
        }
        let ask = Arc::new(shown::approval(
            context, case, verdict, preview, &failed, always,
        )?);
        let answer = self.answer(context, case, &ask).await?;
        match (answer, failed) {
            (Answer::AllowOnce | Answer::AllowAlways | Answer::AllowPrefix, Some(why)) => Err(why),
            (Answer::AllowOnce | Answer::AllowAlways | Answer::AllowPrefix, None) => {
                note_begun(context, &case.call.call_id).await?;
                Ok(ask.preview.clone())
            }
            (Answer::Deny(reason), _) if reason.is_empty() => Err("denied by the user".into()),
            (Answer::Deny(reason), _) => Err(format!("denied by the user: {reason}")),
            (Answer::Questions(_), _) => Err("denied: the approval was withdrawn".into()),
        }
    }

    /// Shows an ask, and waits for the answer.
    async fn answer(
        &self,
        context: &CallContext,
        case: &Case<'_>,
        ask: &Arc<Ask>,
    ) -> Result<Answer, String> {
        let rt = &context.rt;
        // Strangers must not answer for the owner: their streams do not show it.
        let inbox = !context.standing.is_owner;
        let pending = PendingAsk {
            key: context.audience.key().clone(),
            ask: Arc::clone(ask),
            asked_at: rt.now(),
            inbox,
        };
        let log = (!inbox).then(|| Arc::clone(context.audience.log()));
        let mut wait = rt.asks.open(pending, log);
        note_waiting(context, &case.call.call_id)?;
        let audience = Arc::clone(&context.audience);
        let answered = if inbox {
            let timeout = rt.catalog.load().limits.ask_timeout;
            wait.show(move |event| audience.publish_to_watchers(&event));
            // They know that it waits, not for what.
            context.audience.publish_to_readers(AgentEvent::Waiting {
                whom: WAITS_FOR.into(),
                timeout_secs: timeout.as_secs(),
            });
            match wait.answered_within(timeout).await {
                Ok(answered) => Some(answered),
                Err(AskOutcome::TimedOut) => {
                    return Err("denied: nobody answered the approval in time".into());
                }
                Err(AskOutcome::Withdrawn | AskOutcome::Answered { .. }) => None,
            }
        } else {
            // An owner's own question waits as long as the owner does.
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

    /// Whether the file that a call would change may be read unasked.
    async fn may_read(&self, context: &CallContext, case: &Case<'_>) -> bool {
        let Subject::Path { path, .. } = case.subject else {
            return true;
        };
        let subject = Subject::Path {
            path: path.clone(),
            write: false,
        };
        let call = Invocation {
            name: "read".into(),
            ..case.call.clone()
        };
        let case = Case {
            call: &call,
            subject: &subject,
            ..*case
        };
        let rules = &context.agent.permissions;
        let verdict = self.judge(context, &case, rules, context.standing).await;
        verdict.permission == Permission::Allow
    }

    /// Whether exactly this was allowed for good.
    fn is_kept(&self, rule: &AskRule) -> bool {
        let wanted = Wanted {
            agent: &rule.agent,
            sender: &rule.sender,
            tool: &rule.tool,
            exact: &rule.exact,
            cwd: &rule.cwd,
        };
        self.approvals
            .list()
            .iter()
            .any(|kept| kept.covers(&wanted))
    }

    /// Keeps what was allowed for good; it is on disk when this returns.
    pub(crate) async fn keep(
        &self,
        rule: &AskRule,
        prefix: bool,
        at: String,
        by: &Principal,
    ) -> Result<(), String> {
        let approval = Approval {
            agent: rule.agent.clone(),
            sender: rule.sender.clone(),
            tool: rule.tool.clone(),
            exact: match prefix {
                true => rule.prefix.clone(),
                false => rule.exact.clone(),
            },
            cwd: rule.cwd.clone(),
            at,
            by: by.to_string(),
            prefix,
        };
        let kept = self.approvals.add(approval).await;
        kept.inspect_err(|error| tracing::warn!(%error, "an approval could not be kept"))
    }
}

/// What "Allow always" would keep: exactly this call, or exactly this outcome
/// of a change. `None` where no text names it.
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
        // What would be written there is not known.
        (Subject::Path { write: true, .. }, None) => return None,
        (Subject::Path { path, .. }, _) => path.to_str()?.to_owned(),
        (Subject::Command(_) | Subject::Other, _) => verdict.detail.clone(),
    };
    Some(AskRule {
        agent: context.agent.name.to_string(),
        sender: authority(context).to_string(),
        tool: case.call.name.clone(),
        exact,
        cwd: case.call.cwd.to_str()?.to_owned(),
        prefix: String::new(),
    })
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

/// Lets the log say that a call has not begun, so that a restart can tell.
fn note_waiting(context: &CallContext, call_id: &str) -> Result<(), String> {
    let waiting = {
        let mut waiting = waiting(context);
        waiting.push(call_id.to_owned());
        waiting.clone()
    };
    append_waiting(context, waiting).map(drop)
}

/// Takes that back: from here on nobody knows how far the call got. It is on
/// disk before the call begins.
async fn note_begun(context: &CallContext, call_id: &str) -> Result<(), String> {
    let waiting = {
        let mut waiting = waiting(context);
        waiting.retain(|id| id != call_id);
        waiting.clone()
    };
    let synced = append_waiting(context, waiting)?;
    synced.await.map_err(|e| with_source(&e))
}

fn waiting(context: &CallContext) -> MutexGuard<'_, Vec<String>> {
    let waiting = context.waiting.lock();
    waiting.expect("no code panics while it holds the waiting calls")
}

type Synced = BoxFuture<'static, Result<(), storage::Error>>;

fn append_waiting(context: &CallContext, waiting: Vec<String>) -> Result<Synced, String> {
    let Some(shared) = context.rt.registry.get(&context.key) else {
        return Err("the conversation is gone".into());
    };
    let record = MetaRecord {
        waiting: Some(waiting),
        ..MetaRecord::default()
    };
    let appended = shared.append(&[Record::Meta(record)]);
    let position = appended.map_err(|e| with_source(&e))?;
    Ok(shared.synced(position))
}

/// What a call would do, short enough for a line of the log.
fn logged(detail: &str) -> String {
    /// The whole stands in the conversation.
    const MAX_CHARS: usize = 200;
    detail.chars().take(MAX_CHARS).collect()
}

/// The sender for whom a run works in the end.
fn authority(context: &CallContext) -> &Sender {
    match &context.origin {
        Origin::Delegate { root, .. } => &root.sender,
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => &context.key.sender,
    }
}
