//! Judges calls by rules and stored approvals (GATE-2).

use super::CallContext;
use super::case::Case;
use crabtalk_domain::tool::{Invocation, Subject};
use crabtalk_domain::{Origin, Permission, PermissionRule, approval_sender};
use crabtalk_gate::{Disk, Question, Standing, Verdict, approvals, disk, judge, words};
use std::sync::Arc;

/// Judges a call on a blocking thread, since following links on a slow disk may take
/// long.
pub(super) async fn judged_by(
    context: &CallContext,
    case: &Case<'_>,
    rules: &[PermissionRule],
    standing: Standing,
) -> Verdict {
    let user_home = context.rt.catalog.load().user_home.clone();
    // Approvals apply only to runs in which a person can be asked.
    let approvals = if context.standing.unattended {
        Arc::default()
    } else {
        context.rt.toolbox.approvals.list()
    };
    let of = context.key.to_string();
    let (provider, call) = (case.provider.cloned(), case.call.clone());
    let (agent, rules) = (Arc::clone(&context.agent), rules.to_vec());
    let (tool, cwd) = (case.call.name.clone(), case.call.cwd.clone());
    let (subject, arguments) = (case.subject.clone(), case.arguments.to_owned());
    let sender = authority(context);
    let (mode, hosts) = (context.mode, context.rt.hosts.of(context.audience.key()));
    let default_permission = case.spec.default_permission;
    let judged = move |disk: &dyn Disk| {
        let is_own = provider
            .as_ref()
            .is_some_and(|provider| provider.is_own(&call, &subject));
        judge(&Question {
            agent: agent.name.as_str(),
            sender: &sender,
            tool: &tool,
            arguments: &arguments,
            subject: &subject,
            default_permission,
            rules: &rules,
            approvals: &approvals,
            hosts: &hosts,
            cwd: &cwd,
            agent_cwd: agent.cwd.as_deref(),
            user_home: user_home.as_deref(),
            standing,
            mode,
            is_own,
            disk,
        })
    };
    let verdict = disk::ask(&context.rt.toolbox.disk(), &of, judged).await;
    verdict.unwrap_or_else(|why| Verdict {
        permission: Permission::Deny,
        reason: format!("cannot check the permission of the call: {why}"),
        detail: String::new(),
        subject: case.subject.clone(),
    })
}

/// The verdict with prefix rules added to those of the agent's file, whose patterns
/// still apply; `None` unless it allows the call.
pub(super) async fn by_prefix(
    context: &CallContext,
    case: &Case<'_>,
    prefixes: Vec<PermissionRule>,
) -> Option<Verdict> {
    if prefixes.is_empty() || !matches!(case.subject, Subject::Command(_)) {
        return None;
    }
    let own = context.agent.permissions.iter().cloned();
    let rules: Vec<PermissionRule> = own.chain(prefixes).collect();
    let lifted = judged_by(context, case, &rules, context.standing).await;
    (lifted.permission == Permission::Allow).then_some(lifted)
}

/// The rules that "Allow prefix" stored for this agent, sender and folder.
pub(super) fn prefixes(context: &CallContext, case: &Case<'_>) -> Vec<PermissionRule> {
    let cwd = case
        .call
        .cwd
        .to_str()
        .filter(|_| !context.standing.unattended);
    let Some(cwd) = cwd else {
        return Vec::new();
    };
    let (agent, sender) = (context.agent.name.as_str(), authority(context));
    approvals::prefixes(&context.rt.toolbox.approvals.list(), agent, &sender, cwd)
}

/// The prefix that "Allow prefix" would store, if it would allow this call.
pub(super) async fn offered_prefix(context: &CallContext, case: &Case<'_>) -> Option<String> {
    let Subject::Command(command) = case.subject else {
        return None;
    };
    if !context.standing.is_owner || context.standing.unattended || command.access.is_wide() {
        return None;
    }
    let prefix = words::prefix(&command.text)?;
    by_prefix(context, case, vec![approvals::prefix_rule(&prefix)]).await?;
    Some(prefix)
}

/// Whether the file that a call would change may be read without approval.
pub(super) async fn may_read(context: &CallContext, case: &Case<'_>) -> bool {
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
    let verdict = judged_by(context, &case, rules, context.standing).await;
    verdict.permission == Permission::Allow
}

/// The sender on whose authority a run acts; topics of an owner's folder share its
/// approvals.
pub(super) fn authority(context: &CallContext) -> String {
    let sender = match &context.origin {
        Origin::Delegate { root, .. } => &root.sender,
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => &context.key.sender,
    };
    match context.standing.is_owner {
        true => approval_sender(&context.rt.catalog.load().owners, sender).to_owned(),
        false => sender.to_string(),
    }
}
