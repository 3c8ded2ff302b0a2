//! Calls that owners allowed permanently: `config/approvals.toml` (GATE-4).
//!
//! Invariants: an approval covers exactly one call text of one tool, agent,
//! sender and working folder. A prefix of whole words is judged as a rule of
//! the agent's file. Neither lets a command out of the sandbox.

use crabtalk_domain::tool::Invocation;
use crabtalk_domain::{AskRule, BoxFuture, Permission, PermissionRule};
use serde::{Deserialize, Serialize};
use std::future::ready;
use std::sync::Arc;

/// One `[[approval]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The agent that may.
    pub agent: String,
    /// For whom.
    pub sender: String,
    /// With which tool.
    pub tool: String,
    /// The exact command, path or arguments.
    pub exact: String,
    /// In which working folder.
    pub cwd: String,
    /// When it was given, RFC 3339.
    pub at: String,
    /// Who gave it.
    pub by: String,
    /// Whether `exact` is a prefix of commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefix: bool,
}

/// Permanent approvals (`config/approvals.toml`).
pub trait ApprovalBook: Send + Sync {
    /// The current approvals.
    fn list(&self) -> Arc<Vec<Approval>>;

    /// Stores an approval; it is on disk when this returns. The error names the file.
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

impl Approval {
    /// Whether it covers exactly this call.
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

    /// Whether the other one allows the same.
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

/// The rules of the prefixes that an agent may run for a sender in a folder.
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
    /// The text is not TOML, or an entry lacks a field: one broken entry refuses them all.
    #[error("approvals.toml cannot be read, so no approval counts: repair it or remove it")]
    Parse(#[source] toml::de::Error),
    /// The list cannot be written; the file was not touched.
    #[error("the approvals cannot be written as TOML")]
    Render(#[source] toml::ser::Error),
    /// The list is shorter; another command may have removed an entry.
    #[error("approval {index} does not exist: the list has {len}")]
    NoSuch {
        /// The index asked for, from 0.
        index: usize,
        /// How many there are.
        len: usize,
    },
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    #[serde(default)]
    approval: Vec<Approval>,
}

/// Reads the text of `approvals.toml`. A single broken entry refuses the whole text.
pub fn parse(text: &str) -> Result<Vec<Approval>, Error> {
    toml::from_str::<File>(text)
        .map(|file| file.approval)
        .map_err(Error::Parse)
}

/// Writes the text of `approvals.toml`.
pub fn render(approvals: &[Approval]) -> Result<String, Error> {
    toml::to_string(&File {
        approval: approvals.to_vec(),
    })
    .map_err(Error::Render)
}

/// Takes out the entry at `index`, counted from 0.
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
