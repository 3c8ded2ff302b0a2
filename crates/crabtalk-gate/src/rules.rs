//! Judges one tool call: allow, ask or deny (GATE-2, GATE-4, CONV-10).
//!
//! Invariants: a rule with a pattern precedes one without; among matching rules deny
//! precedes ask, and ask precedes allow; an approval answers only an ask; in unattended
//! runs an ask is a denial.

use super::approvals::Approval;
use super::disk::Disk;
use super::path::{self, Bases};
use super::{autorun, scope};
use crabtalk_domain::tool::Subject;
use crabtalk_domain::{AskRule, Mode, Origin, Permission, PermissionRule, Sender, glob_matches};
use std::path::Path;

/// The authority of a run, and whether a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether an owner caused the run.
    pub is_owner: bool,
    /// Whether no person can answer an ask.
    pub unattended: bool,
}

/// The standing of a run, derived from its origin: a sender is an owner only as far as
/// the daemon verified the client. `root` is the standing of the root of a delegation,
/// without which a delegate has no authority. For cron and events it tells whether a
/// person can be asked.
pub fn standing(
    origin: &Origin,
    sender: &Sender,
    owners: &[String],
    root: Option<Standing>,
) -> Standing {
    match origin {
        Origin::Client { principal } => Standing {
            is_owner: principal.may_be_owner()
                && !sender.is_reserved()
                && crabtalk_domain::is_owner(owners, sender.as_str()),
            unattended: false,
        },
        Origin::Cron { .. } | Origin::Event { .. } => Standing {
            is_owner: false,
            unattended: root.is_none_or(|root| root.unattended),
        },
        Origin::Delegate { .. } => root.unwrap_or(Standing {
            is_owner: false,
            unattended: true,
        }),
    }
}

/// The mode of a run that requests none. `is_contained`: the folder is a work tree or
/// trusted, and the sandbox is complete. Only an owner who can be asked gets `auto` by
/// default, or `full`.
pub fn mode_of(of_agent: Option<Mode>, is_attended_owner: bool, is_contained: bool) -> Mode {
    match (of_agent, is_attended_owner) {
        (Some(mode), true) => mode,
        (Some(mode), false) => mode.min(Mode::Auto),
        (None, true) if is_contained => Mode::Auto,
        (None, true | false) => Mode::Ask,
    }
}

/// Everything that a verdict depends on. Paths are absolute and resolved.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The agent that makes the call.
    pub agent: &'a str,
    /// The sender on whose authority the agent acts.
    pub sender: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments as JSON text: the approved text of a [`Subject::Other`].
    pub arguments: &'a str,
    /// The subject of the call.
    pub subject: &'a Subject,
    /// The tool's default permission, for [`Subject::Other`].
    pub default_permission: Permission,
    /// The agent's rules.
    pub rules: &'a [PermissionRule],
    /// The stored approvals.
    pub approvals: &'a [Approval],
    /// Hosts that an owner allowed for this conversation.
    pub hosts: &'a [String],
    /// The run's folder.
    pub cwd: &'a Path,
    /// The folder in the agent's file.
    pub agent_cwd: Option<&'a Path>,
    /// The user's home.
    pub user_home: Option<&'a Path>,
    /// The authority of the run.
    pub standing: Standing,
    /// The mode of the run.
    pub mode: Mode,
    /// Whether the file belongs to the conversation, such as an output of its commands,
    /// which it may read without asking (GATE-3).
    pub is_own: bool,
    /// Resolves links.
    pub disk: &'a dyn Disk,
}

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether to execute, ask, or refuse.
    pub permission: Permission,
    /// The reason for the model, the log and the person who is asked.
    pub reason: String,
    /// The exact command, path or arguments: shown in the question and stored as an
    /// approval's `exact`.
    pub detail: String,
    /// The judged subject: for a command, with the access it runs with.
    pub subject: Subject,
}

/// The exact command, path or arguments of a call.
pub fn detail(subject: &Subject, arguments: &str) -> String {
    match subject {
        Subject::Command(command) => command.text.clone(),
        Subject::Path { path, .. } => path.to_string_lossy().into_owned(),
        Subject::Other => arguments.to_owned(),
    }
}

/// A permission with its reason.
#[derive(Debug, Clone)]
pub(super) struct Opinion {
    pub(super) permission: Permission,
    pub(super) reason: String,
}

impl Opinion {
    pub(super) fn new(permission: Permission, reason: impl Into<String>) -> Self {
        Self {
            permission,
            reason: reason.into(),
        }
    }

    /// The stricter of both; `self` if they are equal.
    pub(super) fn and(self, other: Self) -> Self {
        if other.permission > self.permission {
            other
        } else {
            self
        }
    }
}

/// Judges a call that is in scope.
pub fn judge(q: &Question<'_>) -> Verdict {
    let mut subject = q.subject.clone();
    let opinion = match q.subject {
        Subject::Command(command) => {
            let (opinion, granted) = q.command(command);
            subject = Subject::Command(granted);
            opinion
        }
        Subject::Path { path, write } => q.file(path, *write),
        Subject::Other if q.mode == Mode::Full => q.denied_or(Permission::Allow),
        Subject::Other => q.other(q.tool_default()),
    };
    let detail = detail(q.subject, q.arguments);
    let opinion = q.answered(opinion, &detail);
    Verdict {
        permission: opinion.permission,
        reason: opinion.reason,
        detail,
        subject,
    }
}

impl<'a> Question<'a> {
    /// The verdict on a call without a file or a command.
    fn other(&self, default: Permission) -> Opinion {
        let matches = |rule: &PermissionRule| {
            let pattern = rule.pattern.as_deref();
            pattern.is_some_and(|pattern| glob_matches(pattern, self.arguments))
        };
        self.by_rule(&[self.tool], &matches)
            .unwrap_or_else(|| Opinion::new(default, format!("the default of `{}`", self.tool)))
    }

    fn denied_or(&self, otherwise: Permission) -> Opinion {
        let opinion = self.other(otherwise);
        match opinion.permission {
            Permission::Deny => opinion,
            Permission::Allow | Permission::Ask => Opinion::new(otherwise, "mode full"),
        }
    }

    /// Judges a file (GATE-2).
    fn file(&self, path: &Path, write: bool) -> Opinion {
        // Searching a folder reads its files.
        let tools: &[&str] = match self.tool {
            "grep" | "glob" => &[self.tool, "read"],
            _ => &[self.tool],
        };
        let by_rule = self.by_rule(tools, &|rule| self.rule_matches(rule, path));
        match (by_rule, self.mode) {
            (Some(opinion), _) if opinion.permission == Permission::Deny => opinion,
            (_, Mode::Full) => Opinion::new(Permission::Allow, "mode full"),
            (_, Mode::ReadOnly) if write => {
                Opinion::new(Permission::Deny, "mode read-only: no file changes")
            }
            (Some(opinion), _) => opinion,
            (None, _) => self.file_default(path, write),
        }
    }

    /// The tool's default permission. That of an MCP server applies only to owners
    /// (COMP-3); for others its tools ask.
    fn tool_default(&self) -> Permission {
        let foreign = scope::mcp_server(self.tool).is_some();
        match foreign && !self.standing.is_owner {
            true => self.default_permission.max(Permission::Ask),
            false => self.default_permission,
        }
    }

    /// Applies approvals to an ask, and denies it if no person can answer.
    fn answered(&self, opinion: Opinion, detail: &str) -> Opinion {
        if opinion.permission != Permission::Ask {
            return opinion;
        }
        if self.is_own && matches!(self.subject, Subject::Path { write: false, .. }) {
            return Opinion::new(Permission::Allow, "it is the conversation's own");
        }
        if self.standing.unattended {
            let reason = format!(
                "{}; this run has no person to ask: add a rule to the agent's `permissions`",
                opinion.reason
            );
            return Opinion::new(Permission::Deny, reason);
        }
        // For a change, the caller compares the approved result with the file. For a command,
        // an approval never allows to leave the sandbox.
        let exact_is_text = match self.subject {
            Subject::Command(command) if command.access.is_wide() => false,
            Subject::Path { write: true, .. } => false,
            Subject::Path { path, .. } => path.to_str().is_some(),
            Subject::Command(_) | Subject::Other => true,
        };
        let Some(cwd) = self.cwd.to_str().filter(|_| exact_is_text) else {
            return opinion;
        };
        let call = AskRule {
            agent: self.agent.to_owned(),
            sender: self.sender.to_owned(),
            tool: self.tool.to_owned(),
            exact: detail.to_owned(),
            cwd: cwd.to_owned(),
            prefix: String::new(),
        };
        match self.approvals.iter().find(|given| given.covers(&call)) {
            Some(given) => {
                let reason = format!("approved by {} at {}", given.by, given.at);
                Opinion::new(Permission::Allow, reason)
            }
            None => opinion,
        }
    }

    /// The rules with the name of one of these tools.
    pub(super) fn rules_of<'t>(
        &self,
        tools: &'t [&str],
    ) -> impl Iterator<Item = &'a PermissionRule> + 't
    where
        'a: 't,
    {
        let rules = self.rules;
        rules
            .iter()
            .filter(|rule| tools.iter().any(|tool| glob_matches(&rule.tool, tool)))
    }

    /// The verdict of the rules without a pattern.
    pub(super) fn bare(&self, tools: &[&str]) -> Option<Opinion> {
        self.rules_of(tools)
            .filter(|rule| rule.pattern.is_none())
            .max_by_key(|r| r.permission)
            .map(opinion_of)
    }

    /// The verdict of the rules with a matching pattern, else of those without.
    pub(super) fn by_rule(
        &self,
        tools: &[&str],
        matches: &dyn Fn(&PermissionRule) -> bool,
    ) -> Option<Opinion> {
        self.rules_of(tools)
            .filter(|rule| matches(rule))
            .max_by_key(|rule| rule.permission)
            .map(opinion_of)
            .or_else(|| self.bare(tools))
    }

    /// Whether a rule's pattern matches a resolved path. Rules that refuse also match the
    /// targets of links in the pattern. Rules that allow match only by name below the
    /// resolved folders: a link in a repository must not allow access to its target.
    pub(super) fn rule_matches(&self, rule: &PermissionRule, path: &Path) -> bool {
        let Some(pattern) = rule.pattern.as_deref() else {
            return false;
        };
        let resolved = |path: &Path| {
            self.disk
                .resolve(path)
                .unwrap_or_else(|| path.to_path_buf())
        };
        let (cwd, home) = (resolved(self.cwd), self.user_home.map(resolved));
        let bases = Bases {
            cwd: &cwd,
            home: home.as_deref(),
        };
        path::matches(pattern, path, bases)
            || (rule.permission != Permission::Allow
                && path::leads_to(pattern, path, bases, self.disk))
    }

    /// The defaults for files (GATE-2).
    pub(super) fn file_default(&self, path: &Path, write: bool) -> Opinion {
        let (root, whose) = if self.standing.is_owner {
            (Some(self.cwd), "the working folder")
        } else {
            (self.agent_cwd, "the agent's folder")
        };
        let root = root.and_then(|root| self.disk.resolve(root));
        let home = self
            .user_home
            .map(|home| self.disk.resolve(home).unwrap_or_else(|| home.into()));
        let root = root.filter(|root| path::is_below(path, root, home.as_deref()));
        // The model may read the reason, which must not reveal a link's target.
        match (root, write) {
            (Some(_), false) => Opinion::new(Permission::Allow, format!("reading below {whose}")),
            (Some(root), true) if self.mode == Mode::Auto => {
                match autorun::is_run_later(path, &root) {
                    false => Opinion::new(Permission::Allow, format!("mode auto: below {whose}")),
                    true => Opinion::new(Permission::Ask, "Other programs run this file later"),
                }
            }
            (_, true) => Opinion::new(Permission::Ask, "No rule allows this edit"),
            (None, false) => Opinion::new(Permission::Ask, "No rule allows reading this"),
        }
    }
}

pub(super) fn opinion_of(rule: &PermissionRule) -> Opinion {
    let verb = match rule.permission {
        Permission::Allow => "allowed",
        Permission::Ask => "to be asked for",
        Permission::Deny => "denied",
    };
    Opinion::new(
        rule.permission,
        format!("{verb} by the rule `{}`", name_of(rule)),
    )
}

/// The tool and pattern of a rule, as written in files.
pub(super) fn name_of(rule: &PermissionRule) -> String {
    match &rule.pattern {
        Some(pattern) => format!("{}({pattern})", rule.tool),
        None => rule.tool.clone(),
    }
}

/// The name of a permission in files.
pub(super) fn verb_of(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    }
}
