//! What this crate can fail with.

use crate::Finding;
use std::io;
use std::path::{Path, PathBuf};

/// What this crate can fail with; every message may be shown to a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that tries to be a path.
    #[error("{0:?} cannot name a skill: a name has no `..`, `/` or `\\`")]
    BadName(String),
    /// There is such a skill, and this agent may not use it: a security event.
    #[error(
        "the skill {0:?} is not in the scope of this agent: add it to the agent's file to allow it"
    )]
    OutOfScope(String),
    /// A skill of a folder that somebody else may have written: trust it once you have read it.
    #[error(
        "the skill {name:?} is the project's, and nobody has trusted that folder: the owner can, \
         with `crabtalk trust add {}`",
        project.display()
    )]
    Untrusted {
        /// The skill.
        name: String,
        /// The folder to trust.
        project: PathBuf,
    },
    /// There is such a skill, and what is in its folder may not be loaded; mend what is found.
    #[error("the skill {name:?} cannot be loaded: {}", join(findings))]
    Refused {
        /// The skill.
        name: String,
        /// All that is wrong with it.
        findings: Vec<Finding>,
    },
    /// The list of what is trusted is wrong, and no half of it counts: mend it.
    #[error("{} {reason}", file.display())]
    Broken {
        /// Which file.
        file: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The system refuses a file or a folder, mostly for want of rights.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
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
