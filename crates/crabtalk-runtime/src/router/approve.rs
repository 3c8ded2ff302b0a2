//! Permission, and the question to a person where the rules say `ask`
//! (GATE-2, GATE-4).

use super::{CallContext, Router};
use crate::asks::{Answer, Answered, PendingAsk};
use crate::error::with_source;
use crate::gate::{Approval, Question, Standing, Verdict, judge};
use crabtalk_domain::storage::{self, MetaRecord, Record};
use crabtalk_domain::tool::{Invocation, Subject, ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentEvent, Ask, AskKind, AskOption, AskQuestion, BoxFuture, Origin, Permission,
    PermissionRule, Sender,
};
use std::future::ready;
use std::sync::{Arc, MutexGuard};

/// Calls that somebody approved for good (`config/approvals.toml`).
pub trait ApprovalBook: Send + Sync {
    /// What is approved now.
    fn list(&self) -> Arc<Vec<Approval>>;

    /// Keeps an approval. The error says what happened to which file.
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

/// A call and what is known of it.
pub(super) struct Case<'a> {
    pub(super) spec: &'a ToolSpec,
    /// `None` for a tool of the runtime itself.
    pub(super) provider: Option<&'a Arc<dyn ToolProvider>>,
    pub(super) call: &'a Invocation,
    pub(super) subject: &'a Subject,
    pub(super) arguments: &'a str,
}

impl Router {
    /// Lets a call pass, or says why not.
    pub(super) async fn permit(&self, context: &CallContext, case: Case<'_>) -> Result<(), String> {
        let call = case.call;
        let rules = &context.agent.permissions;
        let standing = context.standing;
        let verdict = self.judge(context, &case, rules, standing).await;
        // A trusted skill speaks for an owner, never for whoever calls it.
        if verdict.permission == Permission::Ask && standing.is_owner {
            let preapproved = self.approvals.preapproved(call).await;
            if !preapproved.is_empty() {
                let lifted = self.judge(context, &case, &preapproved, standing).await;
                if lifted.permission == Permission::Allow {
                    return Ok(());
                }
            }
        }
        match verdict.permission {
            Permission::Allow => Ok(()),
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
            Permission::Ask => self.ask(context, call, &verdict).await,
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
        let resolve = Arc::clone(&self.resolve);
        let (provider, call) = (case.provider.cloned(), case.call.clone());
        let (agent, rules) = (Arc::clone(&context.agent), rules.to_vec());
        let (tool, cwd) = (case.call.name.clone(), case.call.cwd.clone());
        let (subject, arguments) = (case.subject.clone(), case.arguments.to_owned());
        let sender = authority(context).to_string();
        let default_permission = case.spec.default_permission;
        let judged = move || {
            let is_own = provider.is_some_and(|provider| provider.is_own(&call, &subject));
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
                resolve: &*resolve,
            })
        };
        tokio::task::spawn_blocking(judged)
            .await
            .unwrap_or_else(|_| Verdict {
                permission: Permission::Deny,
                reason: "the call could not be judged; the daemon's log says why".into(),
                detail: String::new(),
            })
    }

    async fn ask(
        &self,
        context: &CallContext,
        call: &Invocation,
        verdict: &Verdict,
    ) -> Result<(), String> {
        let rt = &context.rt;
        let ask = Arc::new(Ask {
            id: rt.asks.new_id(),
            kind: AskKind::Approval,
            questions: vec![AskQuestion {
                question: format!(
                    "Allow {} to run {}: {}",
                    context.agent.name, call.name, verdict.detail
                ),
                header: "Approval".into(),
                options: approval_options(),
                multi_select: false,
            }],
            tool: call.name.clone(),
            detail: verdict.detail.clone(),
            preview: None,
            cwd: call.cwd.to_string_lossy().into_owned(),
            reason: verdict.reason.clone(),
            always: None,
        });
        // Strangers must not answer for the owner: their streams do not show it.
        let inbox = !context.standing.is_owner;
        let pending = PendingAsk {
            key: context.audience.key().clone(),
            ask: Arc::clone(&ask),
            asked_at: rt.now(),
            inbox,
        };
        let mut wait = rt.asks.open(pending);
        note_waiting(context, &call.call_id)?;
        let event = AgentEvent::AskUser(ask);
        let answered = if inbox {
            context.audience.publish_to_watchers(&event);
            let timeout = rt.catalog.load().limits.ask_timeout;
            match tokio::time::timeout(timeout, wait.answered()).await {
                Ok(answered) => answered,
                Err(_) => return Err("denied: nobody answered the approval in time".into()),
            }
        } else {
            // An owner's own question waits as long as the owner does.
            context.audience.publish(event);
            wait.answered().await
        };
        let Some(Answered { answer, by }) = answered else {
            return Err("denied: the approval was withdrawn".into());
        };
        match answer {
            Answer::AllowOnce => note_begun(context, &call.call_id).await,
            Answer::AllowAlways => {
                self.keep_approval(context, call, verdict, by).await;
                note_begun(context, &call.call_id).await
            }
            Answer::Deny(reason) if reason.is_empty() => Err("denied by the user".into()),
            Answer::Deny(reason) => Err(format!("denied by the user: {reason}")),
            Answer::Questions(_) => Err("denied: the approval was withdrawn".into()),
        }
    }

    async fn keep_approval(
        &self,
        context: &CallContext,
        call: &Invocation,
        verdict: &Verdict,
        by: String,
    ) {
        let approval = Approval {
            agent: context.agent.name.to_string(),
            sender: authority(context).to_string(),
            tool: call.name.clone(),
            exact: verdict.detail.clone(),
            cwd: call.cwd.to_string_lossy().into_owned(),
            at: context.rt.now(),
            by,
        };
        if let Err(error) = self.approvals.add(approval).await {
            // The call was approved all the same; it will be asked again.
            tracing::warn!(%error, "an approval could not be kept");
        }
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

fn approval_options() -> Vec<AskOption> {
    let option = |label: &str, description: &str| AskOption {
        label: label.into(),
        description: description.into(),
    };
    vec![
        option("Allow once", "this call only"),
        option("Allow always", "exactly this, in this folder, from now on"),
        option("Deny", "refuse; \"Deny: reason\" tells the agent why"),
    ]
}
