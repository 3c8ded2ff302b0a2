//! What this crate can fail with.

use crate::Finding;
use std::io;
use std::path::{Path, PathBuf};

/// What this crate can fail with; every message may be shown to a model.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    /// A name that tries to be a path.
    #[error("{0:?} cannot name a skill: a name has no `..`, `/` or `\\`")]
    BadName(String),
    /// There is such a skill, and this agent may not use it: a security event.
    #[error(
        "the skill {0:?} is not in the scope of this agent: add it to the agent's file to allow it"
    )]
    OutOfScope(String),
    #[error(
        "the skill {name:?} is the project's, and nobody has trusted that folder: the owner can, \
         with `crabtalk trust add {}`",
        project.display()
    )]
    Untrusted { name: String, project: PathBuf },
    #[error("the skill {name:?} cannot be loaded: {}", join(findings))]
    Refused {
        name: String,
        findings: Vec<Finding>,
    },
    /// A file that would have to be guessed about.
    #[error("{} {reason}", file.display())]
    Broken {
        file: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
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
