//! The error of this crate.

use crate::skills::Finding;
use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate; a model may see the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not valid, for instance a path.
    #[error("{0:?} cannot name a skill: a name has no `..`, `/` or `\\`")]
    BadName(String),
    /// The skill is not in the agent's scope, a security event.
    #[error(
        "the skill {0:?} is not in the scope of this agent: add it to the agent's file to allow it"
    )]
    OutOfScope(String),
    /// The skill belongs to an untrusted project.
    #[error(
        "the skill {name:?} belongs to an untrusted project: the owner can trust it with \
         `crabtalk trust add {}`",
        project.display()
    )]
    Untrusted {
        /// The skill.
        name: String,
        /// The folder to trust.
        project: PathBuf,
    },
    /// The skill has errors.
    #[error("the skill {name:?} cannot be loaded: {}", join(findings))]
    Refused {
        /// The skill.
        name: String,
        /// The findings.
        findings: Vec<Finding>,
    },
    /// The trust file is invalid, so that nothing is trusted.
    #[error("{} {reason}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// The problem and the remedy.
        reason: String,
    },
    /// A file or folder cannot be accessed, usually for lack of rights.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn join(findings: &[Finding]) -> String {
    let all: Vec<String> = findings.iter().map(ToString::to_string).collect();
    all.join("; ")
}
