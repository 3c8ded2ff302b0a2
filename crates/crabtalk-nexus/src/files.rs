//! The team's files: identities, contexts, the protocols, and commits of them.
//!
//! Invariants: a commit touches one agent's own paths and nothing that somebody
//! else staged, in the repository of the root and no other; no program that the
//! repository names is run; nothing outside the root is told to an agent; a file that
//! a person changed is not written over.

use crate::agent::Agent;
use crate::clock::Ms;
use crate::config::Team;
use crate::name::Name;
use crate::texts::{COMPRESSION_PROTOCOL, CONSOLIDATION_PROTOCOL};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

/// Largest file that goes behind a line to an agent of the daemon.
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
    identities: BTreeMap<Name, PathBuf>,
}

impl Files {
    /// The files of this team.
    pub fn new(team: &Team) -> Self {
        let names = team.agents.keys();
        Self {
            root: team.root.clone(),
            identities: names
                .map(|name| (name.clone(), team.identity_of(name)))
                .collect(),
        }
    }

    /// Where the team works.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, name: &Name) -> PathBuf {
        self.root.join(name.folder())
    }

    /// Makes the repository and what is missing in it: what was made.
    pub fn init(&self) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(&self.root)?;
        if !self.root.join(".git").exists() {
            let made = self.git(&["init", "--quiet"])?;
            check(&made).map_err(io::Error::other)?;
        }
        let mut files = vec![
            (PathBuf::from(COMPRESSION_PROTOCOL), COMPRESSION_TEXT.into()),
            (
                PathBuf::from(CONSOLIDATION_PROTOCOL),
                CONSOLIDATION_TEXT.into(),
            ),
        ];
        for (name, identity) in &self.identities {
            let folder = PathBuf::from(name.folder());
            let text = |template: &str| {
                let replaced = template.replace("{NAME}", name.as_str());
                replaced.replace("{FOLDER}", &name.folder())
            };
            files.push((identity.clone(), text(AGENT_TEXT)));
            files.push((folder.join("context.md"), text(CONTEXT_TEXT)));
            files.push((folder.join("scratch.md"), text(SCRATCH_TEXT)));
        }
        let mut made = Vec::new();
        for (path, text) in files {
            if write_new(&self.root.join(&path), &text)? {
                made.push(path);
            }
        }
        // What BOOTSTRAP calls `@NAME.md` is found at the root.
        for (name, identity) in &self.identities {
            let link = PathBuf::from(format!("{name}.md"));
            if std::fs::symlink_metadata(self.root.join(&link)).is_err() {
                std::os::unix::fs::symlink(identity, self.root.join(&link))?;
                made.push(link);
            }
        }
        Ok(made)
    }

    /// Bytes of an agent's context.md and scratch.md.
    pub fn measure(&self, name: &Name) -> u64 {
        let folder = self.folder(name);
        let size = |file: &str| std::fs::metadata(folder.join(file)).map_or(0, |m| m.len());
        size("context.md") + size("scratch.md")
    }

    /// Whether an agent's folder is committed, and its context.md newer than the
    /// notice.
    pub fn verify(&self, name: &Name, noticed: SystemTime) -> Result<(), String> {
        let folder = name.folder();
        let status = ["status", "--porcelain", "--", folder.as_str()];
        let output = self.git(&status).map_err(|e| format!("git: {e}"))?;
        let dirty = check(&output)?;
        if let Some(line) = dirty.lines().next() {
            return Err(format!(
                "{} is not committed",
                line.get(3..).unwrap_or(line)
            ));
        }
        let context = self.folder(name).join("context.md");
        let changed = std::fs::metadata(&context).and_then(|m| m.modified());
        let changed = changed.map_err(|e| format!("{folder}/context.md: {e}"))?;
        if changed < noticed {
            return Err(format!("{folder}/context.md is older than the notice"));
        }
        Ok(())
    }

    /// Commits an agent's own paths: which commit, or that nothing changed.
    pub fn checkpoint(&self, name: &Name, message: &str) -> Result<String, String> {
        if !self.folder(name).exists() {
            return Ok("it has no files".into());
        }
        self.commit(&[PathBuf::from(name.folder())], message)
    }

    /// Commits these paths: which commit, or that nothing changed.
    pub fn commit(&self, paths: &[PathBuf], message: &str) -> Result<String, String> {
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        if paths.is_empty() {
            return Ok("nothing changed".into());
        }
        let git = |words: &[&str]| {
            let words: Vec<&str> = words.iter().copied().chain(paths.iter().copied()).collect();
            let output = self.git(&words).map_err(|e| format!("git: {e}"))?;
            check(&output)
        };
        git(&["add", "--"])?;
        if git(&["status", "--porcelain", "--"])?.is_empty() {
            return Ok("nothing changed".into());
        }
        // Paths behind `--` with `--only`: what others staged stays staged.
        git(&["commit", "--quiet", "--only", "-m", message, "--"])?;
        let head = self.git(&["rev-parse", "--short", "HEAD"]);
        let head = head.map_err(|e| format!("git: {e}"))?;
        Ok(format!("commit {}", check(&head)?.trim()))
    }

    fn git(&self, words: &[&str]) -> io::Result<Output> {
        let filters = filters_in(&self.command(&FILTERS).output()?);
        self.command(words).envs(filters).output()
    }

    /// A git that runs no hook: what the repository names is the agents' to write.
    fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "commit.gpgSign=false", "-c", "core.fsmonitor=false"])
            .args(words)
            .current_dir(&self.root)
            // Where the root has no repository any more, one around it is somebody else's.
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.root.parent().unwrap_or(&self.root),
            )
            .env("GIT_LITERAL_PATHSPECS", "1")
            // Nothing that is missing is fetched.
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_AUTHOR_NAME", "NEXUS")
            .env("GIT_AUTHOR_EMAIL", "nexus@localhost")
            .env("GIT_COMMITTER_NAME", "NEXUS")
            .env("GIT_COMMITTER_EMAIL", "nexus@localhost")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .stdin(std::process::Stdio::null());
        git
    }

    /// The files that a line to an agent of the daemon names, as text to stand
    /// behind it.
    pub fn behind(&self, name: &Name, line: &str) -> String {
        let mut text = String::new();
        let known = [COMPRESSION_PROTOCOL, CONSOLIDATION_PROTOCOL];
        let mut paths: Vec<PathBuf> = known
            .iter()
            .filter(|path| line.contains(&format!("@{path}")))
            .map(PathBuf::from)
            .collect();
        if line.contains(&format!("@{name}.md")) {
            paths.extend(self.identities.get(name).cloned());
            paths.push(Path::new(&name.folder()).join("context.md"));
        }
        for path in paths {
            if let Some(content) = self.content(&path) {
                let path = path.display();
                // Headers in a file are no messages: it stands in a fence.
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

    /// What stands in a file below the root. An agent may have put a link there that
    /// leads to what it may not read itself.
    fn content(&self, path: &Path) -> Option<String> {
        let path = self.root.join(path).canonicalize().ok()?;
        let is_inside = path.starts_with(self.root.canonicalize().ok()?);
        if !is_inside {
            return Some(
                "(a link that leads out of the team's folder, and is not followed)".into(),
            );
        }
        crabtalk_files::read_text(&path, MAX_FILE).ok()
    }

    /// Writes the table of states, as NEXUS's own scratch.
    pub fn write_table(&self, agents: &BTreeMap<Name, Agent>, now: Ms) -> io::Result<()> {
        let mut text = String::from(
            "# NEXUS\n\nThe states of the team, written by NEXUS.\n\n\
             | agent | state | since | context | note |\n|---|---|---|---|---|\n",
        );
        for (name, agent) in agents {
            let since = crate::journal::time(agent.since);
            let percent = agent.meters.percent();
            let percent = percent.map_or_else(String::new, |percent| format!("{percent} %"));
            let note = agent.note.replace(['|', '\n'], " ");
            let state = agent.state.to_string();
            let _ = writeln!(text, "| {name} | {state} | {since} | {percent} | {note} |");
        }
        let _ = writeln!(text, "\nWritten at {}.", crate::journal::time(now));
        let folder = self.root.join("nexus");
        if !self.root.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(&folder)?;
        let path = folder.join("scratch.md");
        crabtalk_files::write(&path, text.as_bytes(), crabtalk_files::Existing::Replace)
    }
}

fn longest_fence(text: &str) -> usize {
    let of = |line: &str| line.trim_start().chars().take_while(|c| *c == '`').count();
    text.lines().map(of).max().unwrap_or(0).max(2)
}

/// Whether there was no such file: it is written then.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match crabtalk_files::write(path, text.as_bytes(), crabtalk_files::Existing::Refuse) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells which programs change files on their way into a repository, and who says so.
const FILTERS: [&str; 6] = [
    "config",
    "--show-scope",
    "--null",
    "--name-only",
    "--get-regexp",
    r"^filter\..*\.(clean|smudge|process|required)$",
];

/// The environment of a git without the programs that the repository itself names.
/// Those of the user are nobody else's to write.
fn filters_in(told: &Output) -> Vec<(String, String)> {
    let told = String::from_utf8_lossy(&told.stdout);
    let fields: Vec<&str> = told.split('\0').collect();
    let pairs = fields.chunks_exact(2);
    let own = pairs.filter(|pair| matches!(pair[0], "local" | "worktree"));
    let mut settings = Vec::new();
    for (n, pair) in own.enumerate() {
        let value = if pair[1].ends_with(".required") {
            "false"
        } else {
            ""
        };
        settings.push((format!("GIT_CONFIG_KEY_{n}"), pair[1].to_owned()));
        settings.push((format!("GIT_CONFIG_VALUE_{n}"), value.to_owned()));
    }
    settings.push(("GIT_CONFIG_COUNT".into(), (settings.len() / 2).to_string()));
    settings
}

/// What git said, or why it failed.
fn check(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or("git failed");
    Err(format!("git: {line}"))
}

#[cfg(test)]
mod tests;
