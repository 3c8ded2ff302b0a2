//! The team's files: identities, contexts, protocols, and their commits.
//!
//! ```text
//! git   runs git and commits
//! ```
//!
//! Invariants: a commit includes only one agent's paths and no changes staged by
//! others; agents are shown no file outside the root; a file that a person
//! changed is not overwritten.

mod git;

use crate::config::Team;
use crate::name::Name;
use crate::texts::{COMPRESSION_PROTOCOL, CONSOLIDATION_PROTOCOL};
use crate::world::Commit;
use git::Git;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Largest file that is appended to a line for an agent of the daemon.
const MAX_FILE: u64 = 64 * 1024;

const COMPRESSION_TEXT: &str = include_str!("templates/context_compression_protocol.md");
const CONSOLIDATION_TEXT: &str = include_str!("templates/context_consolidation_protocol.md");
const AGENT_TEXT: &str = include_str!("templates/agent.md");
const CONTEXT_TEXT: &str = include_str!("templates/context.md");
const SCRATCH_TEXT: &str = include_str!("templates/scratch.md");

/// The files of a team.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
    names: Vec<Name>,
    git: Git,
}

impl Files {
    /// The files of a team.
    pub fn new(team: &Team) -> Self {
        Self {
            root: team.root.clone(),
            git: Git::new(&team.root),
            names: team.agents.keys().cloned().collect(),
        }
    }

    /// The team's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, name: &Name) -> PathBuf {
        self.root.join(name.folder())
    }

    /// Creates the repository and missing files; returns the created paths.
    pub fn init(&self) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(&self.root)?;
        if !self.root.join(".git").exists() {
            self.git.init().map_err(io::Error::other)?;
        }
        let mut files = vec![
            (PathBuf::from(COMPRESSION_PROTOCOL), COMPRESSION_TEXT.into()),
            (
                PathBuf::from(CONSOLIDATION_PROTOCOL),
                CONSOLIDATION_TEXT.into(),
            ),
        ];
        for name in &self.names {
            let folder = PathBuf::from(name.folder());
            let text = |template: &str| {
                let replaced = template.replace("{NAME}", name.as_str());
                replaced.replace("{FOLDER}", &name.folder())
            };
            files.push((folder.join("AGENT.md"), text(AGENT_TEXT)));
            files.push((folder.join("context.md"), text(CONTEXT_TEXT)));
            files.push((folder.join("scratch.md"), text(SCRATCH_TEXT)));
        }
        let mut made = Vec::new();
        for (path, text) in files {
            if write_new(&self.root.join(&path), &text)? {
                made.push(path);
            }
        }
        // `@NAME.md` in BOOTSTRAP refers to a file at the root.
        for name in &self.names {
            let link = PathBuf::from(format!("{name}.md"));
            if std::fs::symlink_metadata(self.root.join(&link)).is_err() {
                let identity = Path::new(&name.folder()).join("AGENT.md");
                std::os::unix::fs::symlink(identity, self.root.join(&link))?;
                made.push(link);
            }
        }
        Ok(made)
    }

    /// Checks that an agent's folder is committed, and that its context.md is newer than the
    /// notice.
    pub fn verify(&self, name: &Name, noticed: SystemTime) -> Result<(), String> {
        let folder = name.folder();
        if let Some(path) = self.git.dirty(&folder)? {
            return Err(format!("{path} is not committed"));
        }
        let context = self.folder(name).join("context.md");
        let changed = std::fs::metadata(&context).and_then(|m| m.modified());
        let changed = changed.map_err(|e| format!("{folder}/context.md: {e}"))?;
        if changed < noticed {
            return Err(format!("{folder}/context.md is older than the notice"));
        }
        Ok(())
    }

    /// Commits an agent's paths; reports the commit, or that nothing changed.
    pub fn checkpoint(&self, name: &Name, message: &str) -> Result<Commit, String> {
        if !self.folder(name).exists() {
            return Ok(Commit {
                what: "it has no files".into(),
                ..Commit::default()
            });
        }
        self.commit(&[PathBuf::from(name.folder())], message)
    }

    /// Commits paths; reports the commit, or that nothing changed.
    pub fn commit(&self, paths: &[PathBuf], message: &str) -> Result<Commit, String> {
        self.git.commit(paths, message)
    }

    /// The files named in a line to an agent of the daemon, as text to append to
    /// it.
    pub fn behind(&self, name: &Name, line: &str) -> String {
        let mut text = String::new();
        let known = [COMPRESSION_PROTOCOL, CONSOLIDATION_PROTOCOL];
        let mut paths: Vec<PathBuf> = known
            .iter()
            .filter(|path| line.contains(&format!("@{path}")))
            .map(PathBuf::from)
            .collect();
        if line.contains(&format!("@{name}.md")) {
            let folder = PathBuf::from(name.folder());
            paths.extend(["AGENT.md", "context.md"].map(|file| folder.join(file)));
        }
        for path in paths {
            if let Some(content) = self.content(&path) {
                let path = path.display();
                // A fence keeps headers in the file from being parsed as messages.
                let fence = "`".repeat(longest_fence(&content) + 1);
                let _ = write!(
                    text,
                    "\n\n{path}:\n{fence}\n{}\n{fence}",
                    content.trim_end()
                );
            }
        }
        text
    }

    /// Reads a file below the root. A link, which an agent may have created, must not lead
    /// to files that the agent may not read.
    fn content(&self, path: &Path) -> Option<String> {
        let path = self.root.join(path).canonicalize().ok()?;
        let is_inside = path.starts_with(self.root.canonicalize().ok()?);
        if !is_inside {
            return Some("(a link out of the team's folder; not followed)".into());
        }
        match crabtalk_files::read_text(&path, MAX_FILE) {
            Err(error) if error.is_absent() => None,
            // The agent must know that the file exists.
            Err(error) => Some(format!("(not shown: it {error}; read the file itself)")),
            Ok(text) => Some(text),
        }
    }
}

fn longest_fence(text: &str) -> usize {
    let of = |line: &str| line.trim_start().chars().take_while(|c| *c == '`').count();
    text.lines().map(of).max().unwrap_or(0).max(2)
}

/// Writes a file unless it exists; returns whether it was written.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match crabtalk_files::write(path, text.as_bytes(), crabtalk_files::Existing::Refuse) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
