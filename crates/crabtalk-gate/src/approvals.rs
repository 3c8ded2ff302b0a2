//! Calls that owners allowed permanently: `config/approvals.toml` (GATE-4).
//!
//! Invariants: an approval covers exactly one call text of one tool, agent,
//! sender and working folder. A prefix of whole words is judged as a rule of
//! the agent's file. Neither lets a command out of the sandbox.

use crabtalk_domain::tool::Invocation;
use crabtalk_domain::{BoxFuture, Permission, PermissionRule};
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
    /// Whether `exact` is the beginning of commands, and whatever follows it is
    /// allowed too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefix: bool,
}

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

/// What a new approval would have to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The agent that calls.
    pub agent: &'a str,
    /// For whom it works.
    pub sender: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The exact command, path or arguments.
    pub exact: &'a str,
    /// The working folder.
    pub cwd: &'a str,
}

impl Approval {
    /// Whether it covers exactly this call.
    pub fn covers(&self, wanted: &Wanted<'_>) -> bool {
        !self.prefix
            && self.agent == wanted.agent
            && self.sender == wanted.sender
            && self.tool == wanted.tool
            && self.exact == wanted.exact
            && self.cwd == wanted.cwd
    }

    /// Whether the other one allows the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let what = |one: &Self| {
            let (tool, exact) = (one.tool.clone(), one.exact.clone());
            (
                one.agent.clone(),
                one.sender.clone(),
                tool,
                exact,
                one.cwd.clone(),
                one.prefix,
            )
        };
        what(self) == what(other)
    }
}

/// The rule that a prefix stands for.
pub fn prefix_rule(prefix: &str) -> PermissionRule {
    PermissionRule {
        tool: "bash".into(),
        pattern: Some(format!("{prefix} *")),
        permission: Permission::Allow,
    }
}

/// The rules of the prefixes that were allowed to this agent, for this sender,
/// in this folder.
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

/// Why a text is no list of approvals.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no TOML, or an entry lacks a field: one broken entry refuses them all.
    #[error("approvals.toml cannot be read, so no approval counts: repair it or remove it")]
    Parse(#[source] toml::de::Error),
    /// The list cannot be written; the file was not touched.
    #[error("the approvals cannot be written as TOML")]
    Render(#[source] toml::ser::Error),
    /// Another command removed one meanwhile: list them again.
    #[error("there is no approval {index}: the list has {len}")]
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

/// Reads the text of `approvals.toml`. A single broken entry refuses the whole
/// text: half of what an owner wrote may not be what the owner meant.
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
    fn the_text_comes_back_as_it_went() {
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
    fn a_broken_entry_refuses_the_text() {
        assert!(parse("[[approval]]\nagent = \"crab\"\n").is_err());
        assert!(parse("[[approval]").is_err());
    }

    #[test]
    fn every_field_must_be_equal() {
        let wanted = Wanted {
            agent: "crab",
            sender: "user",
            tool: "bash",
            exact: "git push",
            cwd: "/w",
        };
        let given = approval("git push");
        assert!(given.covers(&wanted));
        for other in [
            Wanted {
                agent: "b",
                ..wanted
            },
            Wanted {
                sender: "b",
                ..wanted
            },
            Wanted {
                tool: "b",
                ..wanted
            },
            Wanted {
                exact: "git push ",
                ..wanted
            },
            Wanted {
                cwd: "/w/",
                ..wanted
            },
        ] {
            assert!(!given.covers(&other), "{other:?}");
        }
    }

    #[test]
    fn a_prefix_covers_nothing_by_itself() {
        let prefix = Approval {
            prefix: true,
            ..approval("git push")
        };
        let wanted = Wanted {
            agent: "crab",
            sender: "user",
            tool: "bash",
            exact: "git push",
            cwd: "/w",
        };
        assert!(!prefix.covers(&wanted));
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
