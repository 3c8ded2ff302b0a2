//! Errors.

use crate::skills::Finding;
use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate; a model may see the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that tries to be a path.
    #[error("{0:?} cannot name a skill: a name has no `..`, `/` or `\\`")]
    BadName(String),
    /// The agent may not use the skill: a security event.
    #[error(
        "the skill {0:?} is not in the scope of this agent: add it to the agent's file to allow it"
    )]
    OutOfScope(String),
    /// A skill of an untrusted project: read it, then trust it.
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
    /// The skill has errors: fix the findings.
    #[error("the skill {name:?} cannot be loaded: {}", join(findings))]
    Refused {
        /// The skill.
        name: String,
        /// The findings.
        findings: Vec<Finding>,
    },
    /// The trust file is invalid and ignored as a whole: fix it.
    #[error("{} {reason}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// The problem and the remedy.
        reason: String,
    },
    /// The system refuses a file or a folder, mostly for missing rights.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
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
