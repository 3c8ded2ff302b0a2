//! Says allow, ask or deny of one tool call (GATE-2, GATE-4, CONV-10).
//!
//! Invariants: a rule with a pattern beats one without, among matches deny
//! beats ask beats allow; an approval lifts an ask and nothing else; where
//! nobody can answer, an ask is a denial. What is not known is never allowed
//! by a narrow rule, and never escapes a refusing one.

use super::approvals::{Approval, Wanted};
use super::bash::{self, FileUse, Inner, Part};
use super::path;
use super::pattern::{self, Holes};
use crabtalk_domain::tool::Subject;
use crabtalk_domain::{Origin, Permission, PermissionRule, Sender, glob_matches};
use std::path::{Path, PathBuf};

/// The principal of the owner's own socket.
pub(crate) const LOCAL_PRINCIPAL: &str = "local";

/// Devices that hold nothing and reach nobody.
const HARMLESS_FILES: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

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
/// the top of a delegation; without it a delegate has no authority.
pub fn standing(
    origin: &Origin,
    sender: &Sender,
    owners: &[String],
    root: Option<Standing>,
) -> Standing {
    match origin {
        Origin::Client { principal } => Standing {
            is_owner: principal == LOCAL_PRINCIPAL
                && !sender.is_reserved()
                && owners.iter().any(|owner| owner == sender.as_str()),
            unattended: false,
        },
        Origin::Cron { .. } | Origin::Event { .. } => Standing {
            is_owner: false,
            unattended: true,
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
    /// Follows links of a file that a redirection names; `None` if it cannot
    /// be told where they lead. The shell opens the file later by its name, so
    /// this closes honest mistakes, and the sandbox closes races.
    pub resolve: &'a dyn Fn(&Path) -> Option<PathBuf>,
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
}

/// The exact command, path or arguments of a call.
pub fn detail(subject: &Subject, arguments: &str) -> String {
    match subject {
        Subject::Command(command) => command.clone(),
        Subject::Path { path, .. } => path.to_string_lossy().into_owned(),
        Subject::Other => arguments.to_owned(),
    }
}

/// A permission with its reason; several are folded to the strictest.
#[derive(Debug, Clone)]
struct Opinion {
    permission: Permission,
    reason: String,
}

impl Opinion {
    fn new(permission: Permission, reason: impl Into<String>) -> Self {
        Self {
            permission,
            reason: reason.into(),
        }
    }

    /// The stricter of both; the first one's reason if they are equal.
    fn and(self, other: Self) -> Self {
        if other.permission > self.permission {
            other
        } else {
            self
        }
    }
}

/// Judges a call that is in scope.
pub fn judge(q: &Question<'_>) -> Verdict {
    let opinion = match q.subject {
        Subject::Command(command) => q.command(command),
        Subject::Path { path, write } => {
            let matches = |p: &str| path::matches(p, path, q.cwd, q.user_home);
            q.by_rule(&[q.tool], &matches)
                .unwrap_or_else(|| q.file_default(path, *write))
        }
        Subject::Other => {
            let matches = |p: &str| glob_matches(p, q.arguments);
            q.by_rule(&[q.tool], &matches).unwrap_or_else(|| {
                Opinion::new(q.default_permission, format!("the default of `{}`", q.tool))
            })
        }
    };
    let detail = detail(q.subject, q.arguments);
    let opinion = q.answered(opinion, &detail);
    Verdict {
        permission: opinion.permission,
        reason: opinion.reason,
        detail,
    }
}

impl<'a> Question<'a> {
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
    fn rules_of<'t>(&self, tools: &'t [&str]) -> impl Iterator<Item = &'a PermissionRule> + 't
    where
        'a: 't,
    {
        let rules = self.rules;
        rules
            .iter()
            .filter(|rule| tools.iter().any(|tool| glob_matches(&rule.tool, tool)))
    }

    /// What the rules without a pattern say.
    fn bare(&self, tools: &[&str]) -> Option<Opinion> {
        self.rules_of(tools)
            .filter(|rule| rule.pattern.is_none())
            .max_by_key(|r| r.permission)
            .map(opinion_of)
    }

    /// What the rules say: those with a matching pattern, else those without.
    fn by_rule(&self, tools: &[&str], matches: &dyn Fn(&str) -> bool) -> Option<Opinion> {
        self.rules_of(tools)
            .filter(|rule| rule.pattern.as_deref().is_some_and(matches))
            .max_by_key(|rule| rule.permission)
            .map(opinion_of)
            .or_else(|| self.bare(tools))
    }

    /// GATE-2's defaults for files.
    fn file_default(&self, path: &Path, write: bool) -> Opinion {
        let (root, whose) = if self.standing.is_owner {
            (Some(self.cwd), "the working folder")
        } else {
            (self.agent_cwd, "the agent's folder")
        };
        if !write && root.is_some_and(|root| path::is_readable_below(path, root, self.user_home)) {
            return Opinion::new(Permission::Allow, format!("reading below {whose}"));
        }
        // The reason may reach the model, and must not say where a link leads.
        let what = if write { "writes" } else { "reads" };
        let reason = format!("what it {what} is allowed by no rule");
        Opinion::new(Permission::Ask, reason)
    }

    /// Judges a command: the strictest of all its parts and files.
    fn command(&self, command: &str) -> Opinion {
        let script = bash::split(command);
        let parts = script.parts.iter().map(|part| self.part(part));
        let files = script.files.iter().map(|file| self.file(file));
        // A command without any part, a comment, runs nothing.
        parts.chain(files).reduce(Opinion::and).unwrap_or_else(|| {
            self.bare(&[self.tool])
                .unwrap_or_else(|| Opinion::new(Permission::Ask, "the command is empty"))
        })
    }

    fn part(&self, part: &Part) -> Opinion {
        let opinion = self
            .patterns(part)
            .or_else(|| self.bare(&[self.tool]))
            .unwrap_or_else(|| {
                let reason = match &part.guard {
                    Some(guard) => guard.clone(),
                    None => format!("`{}` is allowed by no rule", readable(&part.text)),
                };
                Opinion::new(Permission::Ask, reason)
            });
        self.behind(&part.inner)
            .into_iter()
            .fold(opinion, Opinion::and)
    }

    /// What the rules with a pattern say of a part: refusing rules match
    /// whatever may be meant, allowing ones what is surely meant.
    fn patterns(&self, part: &Part) -> Option<Opinion> {
        let mut best: Option<Opinion> = None;
        for rule in self.rules_of(&[self.tool]) {
            let Some(pattern) = rule.pattern.as_deref() else {
                continue;
            };
            let found = match rule.permission {
                Permission::Allow => grants(pattern, part).then(|| opinion_of(rule)),
                Permission::Ask | Permission::Deny if refuses(pattern, part, Holes::Sure) => {
                    Some(opinion_of(rule))
                }
                Permission::Ask | Permission::Deny => {
                    refuses(pattern, part, Holes::Maybe).then(|| {
                        let reason = part.guard.clone().unwrap_or_else(|| {
                            format!("`{}` is not fully known", readable(&part.text))
                        });
                        Opinion::new(
                            Permission::Ask,
                            format!("{reason}, and may match `{}`", name_of(rule)),
                        )
                    })
                }
            };
            best = match (best, found) {
                (Some(best), Some(found)) => Some(best.and(found)),
                (best, found) => best.or(found),
            };
        }
        best
    }

    /// What refusing rules say of the commands behind a command.
    fn behind(&self, inner: &[Inner]) -> Vec<Opinion> {
        let mut opinions = Vec::new();
        for Inner { part, sure } in inner {
            if let Some(opinion) = self.patterns(part)
                && opinion.permission != Permission::Allow
            {
                let permission = if *sure {
                    opinion.permission
                } else {
                    Permission::Ask
                };
                opinions.push(Opinion::new(permission, opinion.reason));
            }
            opinions.extend(self.behind(&part.inner));
        }
        opinions
    }

    /// Judges a file of a redirection by the rules of the file tools; where
    /// they say nothing, whoever allows every command allows its files.
    fn file(&self, file: &FileUse) -> Opinion {
        let (tools, what): (&[&str], _) = if file.write {
            (&["write", "edit"], "written")
        } else {
            (&["read"], "read")
        };
        let every_command = self.every_command();
        let Some(path) = self.path_of(file) else {
            let strict = self
                .rules_of(tools)
                .find(|rule| rule.permission != Permission::Allow);
            let reason = format!("a file that is not known before would be {what}");
            return match (every_command, strict) {
                (Some(allowed), None) => allowed,
                _ => Opinion::new(Permission::Ask, reason),
            };
        };
        if HARMLESS_FILES
            .iter()
            .any(|harmless| path == Path::new(harmless))
        {
            return Opinion::new(Permission::Allow, "nothing is kept");
        }
        // Some shells connect to the network by these names.
        if path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
            return every_command
                .unwrap_or_else(|| Opinion::new(Permission::Ask, "it would open a connection"));
        }
        let matches = |p: &str| path::matches(p, &path, self.cwd, self.user_home);
        self.by_rule(tools, &matches)
            .or(every_command)
            .unwrap_or_else(|| self.file_default(&path, file.write))
    }

    fn path_of(&self, file: &FileUse) -> Option<PathBuf> {
        let text = file.path.as_deref()?;
        let written = Path::new(text);
        if file.tilde {
            return (self.resolve)(&path::absolute(written, self.cwd, self.user_home)?);
        }
        if file.moved && !written.is_absolute() {
            return None;
        }
        // Not `absolute`: an unquoted `~` has been dealt with, this one is a
        // name, and `..` after a link is for `resolve` to follow.
        (self.resolve)(&self.cwd.join(written))
    }

    /// Whether any command at all is allowed: a bare `allow`, or `*`.
    fn every_command(&self) -> Option<Opinion> {
        self.rules_of(&[self.tool])
            .filter(|rule| rule.pattern.as_deref().is_none_or(pattern::is_everything))
            .max_by_key(|rule| rule.permission)
            .filter(|rule| rule.permission == Permission::Allow)
            .map(opinion_of)
    }
}

/// Whether an allowing pattern covers a part: a guarded one must be spelled
/// out, or everything allowed.
fn grants(pattern: &str, part: &Part) -> bool {
    if pattern::is_everything(pattern) {
        return true;
    }
    if part.guard.is_none() && pattern::command(pattern, &part.text, Holes::Sure) {
        return true;
    }
    let may_be_quoted = part.guard.is_some() || pattern.contains(['\'', '"', '\\']);
    if !may_be_quoted || !pattern::is_literal(pattern) || part.text.contains(pattern::HOLE) {
        return false;
    }
    // Compared after parsing, so that quotes may be written as one likes.
    match bash::split(pattern).parts.as_slice() {
        [spelled] => spelled.exact == part.exact,
        _ => false,
    }
}

/// Whether a refusing pattern reaches a part, however both are quoted.
fn refuses(pattern: &str, part: &Part, holes: Holes) -> bool {
    let unquoted = pattern.replace(['\'', '"', '\\'], "");
    pattern::command(pattern, &part.text, holes)
        || pattern::command(pattern, &part.exact, holes)
        || pattern::command(&unquoted, &part.text, holes)
}

fn opinion_of(rule: &PermissionRule) -> Opinion {
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

/// A part's text for a message: holes as dots, and not too much of it.
fn readable(text: &str) -> String {
    /// Longer texts are in the detail anyway.
    const MAX_CHARS: usize = 120;
    let shown: String = text.chars().take(MAX_CHARS).collect();
    shown.replace(pattern::HOLE, "...")
}
