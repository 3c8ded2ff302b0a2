//! Stored approvals of calls: `config/approvals.toml` (GATE-4).
//!
//! Invariants: an approval covers exactly one call text of one tool, agent, sender and
//! working folder. A prefix of whole words is judged like a rule in the agent's file.
//! Neither lets a command out of the sandbox.

use crabtalk_domain::tool::Invocation;
use crabtalk_domain::{AskRule, BoxFuture, Permission, PermissionRule};
use serde::{Deserialize, Serialize};
use std::future::ready;
use std::sync::Arc;

/// One `[[approval]]` of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The agent that may make the call.
    pub agent: String,
    /// The sender for whom it may.
    pub sender: String,
    /// The tool that it may call.
    pub tool: String,
    /// The exact command, path or arguments.
    pub exact: String,
    /// The working folder of the call.
    pub cwd: String,
    /// RFC 3339 instant of the approval.
    pub at: String,
    /// The principal who approved.
    pub by: String,
    /// Whether `exact` is a prefix that covers all commands beginning with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefix: bool,
}

/// Stores approvals.
pub trait ApprovalBook: Send + Sync {
    /// The current approvals.
    fn list(&self) -> Arc<Vec<Approval>>;

    /// Stores an approval; it is on disk when this returns. The error names the file.
    fn add(&self, approval: Approval) -> BoxFuture<'_, Result<(), String>>;

    /// Rules that turn an `ask` for this call into an `allow`, for instance those of a
    /// trusted skill that its run uses (SKILL-2). They never override a `deny`.
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

impl Approval {
    /// Whether the approval covers exactly this call.
    pub fn covers(&self, call: &AskRule) -> bool {
        let call = [
            &call.agent,
            &call.sender,
            &call.tool,
            &call.exact,
            &call.cwd,
        ];
        !self.prefix && self.call() == call
    }

    /// Whether the other approval allows the same calls.
    pub fn is_same(&self, other: &Self) -> bool {
        self.prefix == other.prefix && self.call() == other.call()
    }

    fn call(&self) -> [&String; 5] {
        [
            &self.agent,
            &self.sender,
            &self.tool,
            &self.exact,
            &self.cwd,
        ]
    }
}

/// The rule of an approved prefix.
pub fn prefix_rule(prefix: &str) -> PermissionRule {
    PermissionRule {
        tool: "bash".into(),
        pattern: Some(format!("{prefix} *")),
        permission: Permission::Allow,
    }
}

/// The rules from approved prefixes for an agent, a sender and a folder.
pub fn prefixes(
    approvals: &[Approval],
    agent: &str,
    sender: &str,
    cwd: &str,
) -> Vec<PermissionRule> {
    let fits = |approval: &&Approval| {
        approval.prefix
            && approval.tool == "bash"
            && (approval.agent.as_str(), approval.sender.as_str()) == (agent, sender)
            && approval.cwd == cwd
    };
    let fitting = approvals.iter().filter(fits);
    fitting
        .map(|approval| prefix_rule(&approval.exact))
        .collect()
}

/// An error in the list of approvals.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not TOML, or an entry lacks a field; one broken entry refuses all.
    #[error("approvals.toml cannot be read, so no approval counts: repair it or remove it")]
    Parse(#[source] toml::de::Error),
    /// The list cannot be converted to TOML; the file is unchanged.
    #[error("the approvals cannot be written as TOML")]
    Render(#[source] toml::ser::Error),
    /// No entry has this index, for instance since another command removed one.
    #[error("approval {index} does not exist: the list has {len}")]
    NoSuch {
        /// The requested index, from 0.
        index: usize,
        /// Number of entries.
        len: usize,
    },
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    #[serde(default)]
    approval: Vec<Approval>,
}

/// Parses the text of `approvals.toml`. One broken entry refuses the whole text.
pub fn parse(text: &str) -> Result<Vec<Approval>, Error> {
    toml::from_str::<File>(text)
        .map(|file| file.approval)
        .map_err(Error::Parse)
}

/// Formats the text of `approvals.toml`.
pub fn render(approvals: &[Approval]) -> Result<String, Error> {
    toml::to_string(&File {
        approval: approvals.to_vec(),
    })
    .map_err(Error::Render)
}

/// Removes and returns the entry at `index`, counted from 0.
pub fn remove(approvals: &mut Vec<Approval>, index: usize) -> Result<Approval, Error> {
    if index < approvals.len() {
        Ok(approvals.remove(index))
    } else {
        Err(Error::NoSuch {
            index,
            len: approvals.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(exact: &str) -> Approval {
        Approval {
            agent: "crab".into(),
            sender: "user".into(),
            tool: "bash".into(),
            exact: exact.into(),
            cwd: "/w".into(),
            at: "2026-11-21T15:00:00Z".into(),
            by: "user".into(),
            prefix: false,
        }
    }

    #[test]
    fn rendered_approvals_parse_to_the_same() {
        let all = vec![
            approval("git push"),
            approval("echo \"a\nb\" '''\u{7f}\t🦀"),
        ];
        let text = render(&all).expect("renders");
        assert!(
            text.starts_with("[[approval]]\nagent = \"crab\"\n"),
            "{text}"
        );
        assert_eq!(parse(&text).expect("parses"), all);
        assert_eq!(parse("").expect("empty"), []);
        assert_eq!(parse(&render(&[]).expect("renders")).expect("parses"), []);
    }

    #[test]
    fn broken_entries_refuse_the_text() {
        assert!(parse("[[approval]]\nagent = \"crab\"\n").is_err());
        assert!(parse("[[approval]").is_err());
    }

    fn call() -> AskRule {
        AskRule {
            agent: "crab".into(),
            sender: "user".into(),
            tool: "bash".into(),
            exact: "git push".into(),
            cwd: "/w".into(),
            prefix: String::new(),
        }
    }

    #[test]
    fn approvals_cover_calls_with_equal_fields() {
        let given = approval("git push");
        assert!(given.covers(&call()));
        let others: [fn(&mut AskRule); 5] = [
            |call| call.agent = "b".into(),
            |call| call.sender = "b".into(),
            |call| call.tool = "b".into(),
            |call| call.exact.push(' '),
            |call| call.cwd.push('/'),
        ];
        for change in others {
            let mut other = call();
            change(&mut other);
            assert!(!given.covers(&other), "{other:?}");
        }
    }

    #[test]
    fn prefixes_cover_no_call_by_themselves() {
        let prefix = Approval {
            prefix: true,
            ..approval("git push")
        };
        assert!(!prefix.covers(&call()));
        assert!(!prefix.is_same(&approval("git push")));
        let text = render(std::slice::from_ref(&prefix)).expect("renders");
        assert_eq!(parse(&text).expect("parses"), [prefix]);
    }

    #[test]
    fn entries_are_removed_by_index() {
        let mut all = vec![approval("a"), approval("b")];
        assert_eq!(remove(&mut all, 0).expect("there").exact, "a");
        assert!(matches!(
            remove(&mut all, 1),
            Err(Error::NoSuch { index: 1, len: 1 })
        ));
        assert_eq!(all.len(), 1);
    }
}
