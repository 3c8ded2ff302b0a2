//! Judges shell commands (GATE-2).
//!
//! A sandboxed command asks only if the mode or a rule requires it. Each kind of access
//! beyond the sandbox (running outside, hosts, other folders) needs a separate
//! permission.

use super::patterns::Words;
use super::rules::{Opinion, Question, opinion_of};
use super::words;
use crabtalk_domain::tool::{CommandAccess, ShellCommand};
use crabtalk_domain::{Mode, Permission, PermissionRule, glob_matches};
use std::path::Path;

/// The name of rules that allow exact commands outside the sandbox.
const OUTSIDE: &str = "outside";

/// The name of rules that allow hosts.
const NETWORK: &str = "network";

impl Question<'_> {
    /// Judges a command; also returns it with the access that it gets if allowed.
    pub(super) fn command(&self, command: &ShellCommand) -> (Opinion, ShellCommand) {
        let wanted = &command.access;
        let mut granted = wanted.clone();
        granted.outside = wanted.outside || self.mode == Mode::Full;
        granted.read_only = self.mode == Mode::ReadOnly;
        let rules = self.by_command_rules(&command.text);
        let denied = rules.clone().filter(|o| o.permission == Permission::Deny);
        let opinion = match (denied, self.mode) {
            (Some(denied), _) => denied,
            (None, Mode::Full) => Opinion::new(Permission::Allow, "mode full"),
            (None, Mode::ReadOnly) if wanted.is_wide() => Opinion::new(
                Permission::Deny,
                "mode read-only: commands stay in the sandbox",
            ),
            (None, Mode::ReadOnly) => Opinion::new(Permission::Allow, "mode read-only"),
            (None, Mode::Ask | Mode::Auto) if wanted.outside => self.outside(command),
            (None, Mode::Ask | Mode::Auto) => {
                let inside = rules.unwrap_or_else(|| self.unruled(&command.text));
                inside.and(self.hosts(wanted)).and(self.write(wanted))
            }
        };
        if opinion.permission == Permission::Allow {
            granted.hosts.extend(self.hosts.iter().cloned());
        }
        let command = ShellCommand {
            text: command.text.clone(),
            access: granted,
        };
        (opinion, command)
    }

    /// The mode's verdict on a sandboxed command that no rule covers.
    fn unruled(&self, text: &str) -> Opinion {
        if self.mode == Mode::Auto {
            return Opinion::new(Permission::Allow, "mode auto: it runs in the sandbox");
        }
        let line = text.lines().next().unwrap_or_default();
        let reason = format!("No rule allows `{}`", clipped(line));
        Opinion::new(Permission::Ask, reason)
    }

    /// Commands outside the sandbox ask unless a rule of the agent's file names them exactly.
    fn outside(&self, command: &ShellCommand) -> Opinion {
        let named = |rule: &&PermissionRule| {
            rule.tool == OUTSIDE
                && rule.pattern.as_deref().map(str::trim) == Some(command.text.trim())
        };
        let rule = self.rules.iter().filter(named).max_by_key(|r| r.permission);
        if let Some(rule) = rule {
            return opinion_of(rule);
        }
        let reason = with_reason("It runs outside the sandbox", &command.access);
        match self.standing.is_owner {
            true => Opinion::new(Permission::Ask, reason),
            false => Opinion::new(
                Permission::Deny,
                "runs that no owner started stay in the sandbox; \
                 a rule `outside(COMMAND): allow` in the agent's file names exceptions",
            ),
        }
    }

    /// Hosts require a rule, a grant for this conversation, or an answer.
    fn hosts(&self, wanted: &CommandAccess) -> Opinion {
        let mut asked = Vec::new();
        for host in &wanted.hosts {
            let covers = |pattern: &str| pattern == "*" || glob_matches(pattern, host);
            let matching = |rule: &&PermissionRule| {
                rule.tool == NETWORK && rule.pattern.as_deref().is_none_or(covers)
            };
            let rule = self
                .rules
                .iter()
                .filter(matching)
                .max_by_key(|r| r.permission);
            match rule.map(|rule| rule.permission) {
                Some(Permission::Deny) => {
                    let reason = format!("a rule denies network access to {host}");
                    return Opinion::new(Permission::Deny, reason);
                }
                Some(Permission::Allow) => {}
                None if self.hosts.iter().any(|granted| covers(granted)) => {}
                Some(Permission::Ask) | None => asked.push(host.as_str()),
            }
        }
        if asked.is_empty() {
            return Opinion::new(Permission::Allow, "");
        }
        let what = format!("It needs network access to {}", asked.join(", "));
        Opinion::new(Permission::Ask, with_reason(&what, wanted))
    }

    /// Folders beyond the working folder require a rule for `write`, or an answer.
    fn write(&self, wanted: &CommandAccess) -> Opinion {
        let ruled = |path: &Path| {
            self.rules_of(&["write"])
                .filter(|rule| self.rule_matches(rule, path))
                .max_by_key(|rule| rule.permission)
        };
        let judge = |path: &std::path::PathBuf| match ruled(path) {
            Some(rule) if rule.permission != Permission::Ask => opinion_of(rule),
            Some(_) | None => {
                let what = format!("It needs to write {}", path.display());
                Opinion::new(Permission::Ask, with_reason(&what, wanted))
            }
        };
        let none = Opinion::new(Permission::Allow, "");
        wanted.write.iter().map(judge).fold(none, Opinion::and)
    }

    /// The verdict of the rules for this tool; `None` if none applies.
    fn by_command_rules(&self, text: &str) -> Option<Opinion> {
        let rules: Vec<&PermissionRule> = self.rules_of(&[self.tool]).collect();
        let plain = words::commands(text);
        let is_plain = plain.is_some();
        let mut all: Option<Opinion> = None;
        let mut is_covered = true;
        for command in plain.unwrap_or_else(|| words::roughly(text)) {
            let covers = |rule: &&PermissionRule| {
                let Some(pattern) = rule.pattern.as_deref() else {
                    return false;
                };
                let pattern = Words::parse(pattern);
                match rule.permission {
                    Permission::Allow => {
                        pattern == Words::Any
                            || is_plain
                                && pattern.allows(&command)
                                && !self.disk.is_replaceable(&command[0], self.cwd)
                    }
                    Permission::Ask | Permission::Deny => pattern.refuses(&command),
                }
            };
            let rule = rules.iter().copied().filter(covers);
            let found = rule.max_by_key(|rule| rule.permission).map(opinion_of);
            match found.or_else(|| self.bare(&[self.tool])) {
                Some(found) => all = Some(all.map_or(found.clone(), |all| all.and(found))),
                None => is_covered = false,
            }
        }
        all.filter(|all| is_covered || all.permission != Permission::Allow)
    }
}

/// Appends the model's reason on one line.
fn with_reason(what: &str, access: &CommandAccess) -> String {
    match access.reason.trim() {
        "" => what.to_owned(),
        reason => format!("{what}. The agent's reason: {}", clipped(reason)),
    }
}

/// Shortens a text to one line.
fn clipped(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut line: String = text.chars().take(MAX_CHARS).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        line.push('…');
    }
    line
}
