//! Says allow, ask or deny of one tool call (GATE-2, GATE-4, CONV-10).
//!
//! Invariants: a rule with a pattern beats one without, among matches deny
//! beats ask beats allow; an approval lifts an ask and nothing else; where
//! nobody can answer, an ask is a denial.

use super::approvals::{Approval, Wanted};
use super::disk::Disk;
use super::path::{self, Bases};
use super::scope;
use crabtalk_domain::tool::{Reach, ShellCommand, Subject};
use crabtalk_domain::{Origin, Permission, PermissionRule, Sender, glob_matches};
use std::path::Path;

/// With whose authority a run acts, and whether anybody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether an owner caused the run.
    pub is_owner: bool,
    /// Whether nobody can answer an ask.
    pub unattended: bool,
}

/// The standing of a run. It is read from the origin: a sender counts only as
/// far as the daemon proved who speaks. `root` is the standing of the run at
/// the top of a delegation; without it a delegate has no authority. For what
/// nobody started by hand it says whether somebody can be asked all the same.
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

/// Everything a verdict depends on. Paths are absolute and resolved.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The agent that calls.
    pub agent: &'a str,
    /// For whom it works.
    pub sender: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments as JSON text: what is approved when the subject is
    /// [`Subject::Other`].
    pub arguments: &'a str,
    /// What it would touch.
    pub subject: &'a Subject,
    /// The tool's own default, for [`Subject::Other`].
    pub default_permission: Permission,
    /// The agent's rules.
    pub rules: &'a [PermissionRule],
    /// What owners allowed for good.
    pub approvals: &'a [Approval],
    /// Where the conversation works.
    pub cwd: &'a Path,
    /// Where the agent's file says it works.
    pub agent_cwd: Option<&'a Path>,
    /// The user's home.
    pub user_home: Option<&'a Path>,
    /// With whose authority.
    pub standing: Standing,
    /// Whether the file is the conversation's own, such as an output of its
    /// commands, which it may read unasked (GATE-3).
    pub is_own: bool,
    /// The disk. The shell opens files later by their names, so looking closes
    /// honest mistakes, and the sandbox closes races.
    pub disk: &'a dyn Disk,
    /// How far CrabTalk's own home is open to this call (GATE-3).
    pub reach: &'a dyn Fn(&Path) -> Reach,
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Run, ask, or refuse.
    pub permission: Permission,
    /// Why, for the model, the log and whoever is asked.
    pub reason: String,
    /// The exact thing that would be done: shown in the question and stored
    /// as an approval's `exact`.
    pub detail: String,
    /// What runs in place of the command, if a narrow rule allowed it.
    pub run: Option<ShellCommand>,
}

/// The exact command, path or arguments of a call.
pub fn detail(subject: &Subject, arguments: &str) -> String {
    match subject {
        Subject::Command(command) => command.text.clone(),
        Subject::Path { path, .. } => path.to_string_lossy().into_owned(),
        Subject::Other => arguments.to_owned(),
    }
}

/// A permission with its reason; several are folded to the strictest.
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

    /// The stricter of both; the first one's reason if they are equal.
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
    let mut run = None;
    let opinion = match q.subject {
        Subject::Command(command) => {
            let (opinion, tame) = q.command(&command.text);
            run = tame;
            opinion
        }
        Subject::Path { path, write } => q
            .by_rule(&[q.tool], &|rule| q.rule_matches(rule, path))
            .unwrap_or_else(|| q.file_default(path, *write)),
        Subject::Other => {
            let matches = |rule: &PermissionRule| {
                rule.pattern
                    .as_deref()
                    .is_some_and(|p| glob_matches(p, q.arguments))
            };
            q.by_rule(&[q.tool], &matches).unwrap_or_else(|| {
                Opinion::new(q.tool_default(), format!("the default of `{}`", q.tool))
            })
        }
    };
    let detail = match &run {
        Some(command) => command.text.clone(),
        None => detail(q.subject, q.arguments),
    };
    let opinion = q.answered(opinion, &detail);
    Verdict {
        permission: opinion.permission,
        reason: opinion.reason,
        detail,
        run,
    }
}

impl<'a> Question<'a> {
    /// What a tool says for itself. A server's word counts for owners only
    /// (COMP-3): for others its tools ask.
    fn tool_default(&self) -> Permission {
        let foreign = scope::mcp_server(self.tool).is_some();
        match foreign && !self.standing.is_owner {
            true => self.default_permission.max(Permission::Ask),
            false => self.default_permission,
        }
    }

    /// Settles an ask that has its answer already, or can have none.
    fn answered(&self, opinion: Opinion, detail: &str) -> Opinion {
        if opinion.permission != Permission::Ask {
            return opinion;
        }
        if self.is_own && matches!(self.subject, Subject::Path { write: false, .. }) {
            return Opinion::new(Permission::Allow, "it is the conversation's own");
        }
        if self.standing.unattended {
            let reason = format!(
                "{}, and nobody is there to be asked: allow it in the agent's `permissions`",
                opinion.reason
            );
            return Opinion::new(Permission::Deny, reason);
        }
        // A change is allowed for what it makes of the file, which only the
        // file tells: whoever asks looks there.
        let exact_is_text = match self.subject {
            Subject::Path { write: true, .. } => false,
            Subject::Path { path, .. } => path.to_str().is_some(),
            Subject::Command(_) | Subject::Other => true,
        };
        let Some(cwd) = self.cwd.to_str().filter(|_| exact_is_text) else {
            return opinion;
        };
        let wanted = Wanted {
            agent: self.agent,
            sender: self.sender,
            tool: self.tool,
            exact: detail,
            cwd,
        };
        match self
            .approvals
            .iter()
            .find(|approval| approval.covers(&wanted))
        {
            Some(given) => {
                let reason = format!("approved by {} at {}", given.by, given.at);
                Opinion::new(Permission::Allow, reason)
            }
            None => opinion,
        }
    }

    /// The rules that name one of these tools.
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

    /// What the rules without a pattern say.
    pub(super) fn bare(&self, tools: &[&str]) -> Option<Opinion> {
        self.rules_of(tools)
            .filter(|rule| rule.pattern.is_none())
            .max_by_key(|r| r.permission)
            .map(opinion_of)
    }

    /// What the rules say: those with a matching pattern, else those without.
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

    /// Whether a rule's pattern matches a resolved path. What refuses matches
    /// by its own name and by where that leads. What allows counts by its name
    /// below the resolved folders alone: a link that a repository brings along
    /// must not open what it leads to.
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

    /// GATE-2's defaults for files.
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
        if !write && root.is_some_and(|root| path::is_readable_below(path, &root, home.as_deref()))
        {
            return Opinion::new(Permission::Allow, format!("reading below {whose}"));
        }
        // The reason may reach the model, and must not say where a link leads.
        let what = if write { "writes" } else { "reads" };
        let reason = format!("what it {what} is allowed by no rule");
        Opinion::new(Permission::Ask, reason)
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

/// A rule's left side, as files have it.
pub(super) fn name_of(rule: &PermissionRule) -> String {
    match &rule.pattern {
        Some(pattern) => format!("{}({pattern})", rule.tool),
        None => rule.tool.clone(),
    }
}

/// A permission, as files have it.
pub(super) fn verb_of(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    }
}
