//! Runs git in the team's repository: finds changes and commits them.
//!
//! Invariants: no program named by the repository or a nested one is
//! run; commits go only into the repository that the root had first;
//! nothing is added during a merge or a similar operation; `timeout` ends a hanging git, in
//! a separate process group, even if NEXUS has ended; reading takes no lock, so
//! agents' git commands do not fail because of it.

use crate::world::Commit;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Timeout of git in seconds. A file of an agent may block git forever,
/// such as a named pipe called `.gitignore`.
const PATIENCE: &str = "60";

/// The exit status of `timeout` after it ended a program.
const TIMED_OUT: i32 = 124;

/// Maximum output of one git command: the names of a hundred thousand files.
const MAX_SAID: u64 = 16 * 1024 * 1024;

/// Largest file that is committed, since the repository stores each version.
const MAX_COMMITTED: u64 = 64 * 1024 * 1024;

/// Maximum attempts to commit while the index is locked.
const TRIES: u32 = 20;

/// Pause between two attempts: an agent's git usually takes less.
const AGAIN: Duration = Duration::from_millis(100);

/// Files in the git directory that mark an unfinished operation.
const UNFINISHED: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
];

/// git in a team's repository.
#[derive(Debug, Clone)]
pub(super) struct Git {
    root: PathBuf,
    patience: &'static str,
    /// The first known git directory. An agent may later replace
    /// `.git` by a reference to another repository of its user.
    first: Arc<OnceLock<PathBuf>>,
}

/// Paths to commit, by their names in the repository.
struct Change {
    path: OsString,
    /// Whether git has to read the file first.
    is_in_folder: bool,
}

impl Git {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            patience: PATIENCE,
            first: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_patience(mut self, patience: &'static str) -> Self {
        self.patience = patience;
        self
    }

    /// Creates the repository.
    pub(super) fn init(&self) -> Result<(), String> {
        self.said(&["init", "--quiet"]).map(drop)
    }

    /// An uncommitted file below this path.
    pub(super) fn dirty(&self, path: &str) -> Result<Option<String>, String> {
        let status = ["status", "--porcelain", LOOK_AT_NO_OTHER, "--", path];
        let dirty = self.said(&status)?;
        let line = dirty.lines().next();
        Ok(line.map(|line| line.get(3..).unwrap_or(line).to_owned()))
    }

    /// Commits changes below these paths; reports the commit, or that nothing changed.
    /// Paths staged by others stay staged.
    pub(super) fn commit(&self, paths: &[PathBuf], message: &str) -> Result<Commit, String> {
        self.commit_when(paths, message, || std::thread::sleep(AGAIN))
    }

    /// Like [`Self::commit`]; `wait` is called before each further attempt.
    pub(super) fn commit_when(
        &self,
        paths: &[PathBuf],
        message: &str,
        mut wait: impl FnMut(),
    ) -> Result<Commit, String> {
        let mut tries = 1..TRIES;
        // The index may have been unlocked by now.
        let mut was_locked = true;
        loop {
            let failed = match self.commit_once(paths, message) {
                Ok(said) => return Ok(said),
                Err(failed) => failed,
            };
            let is_locked = self.has(["index.lock"])?.is_some();
            if !(is_locked || was_locked) || tries.next().is_none() {
                return Err(failed);
            }
            was_locked = is_locked;
            wait();
        }
    }

    fn commit_once(&self, paths: &[PathBuf], message: &str) -> Result<Commit, String> {
        if let Some(at) = self.has(UNFINISHED.map(|(file, _)| file))? {
            let (_, what) = UNFINISHED[at];
            return Err(format!("{what} is in progress there"));
        }
        let (changes, left_out) = self.changes(paths)?;
        if changes.is_empty() {
            let what = "nothing changed".into();
            return Ok(Commit { what, left_out });
        }
        let read = listed(changes.iter().filter(|change| change.is_in_folder));
        if !read.is_empty() {
            self.fed(&["add"], read)?;
        }
        let commit = ["commit", "--quiet", "--only", "-m", message];
        self.fed(&commit, listed(&changes))?;
        let head = self.said(&["rev-parse", "--short", "HEAD"])?;
        let what = format!("commit {}", head.trim());
        Ok(Commit { what, left_out })
    }

    /// Changes below these paths, and changes that are not committed, with the reason.
    fn changes(&self, paths: &[PathBuf]) -> Result<(Vec<Change>, Vec<String>), String> {
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let (mut changes, mut left_out) = (Vec::new(), Vec::new());
        if paths.is_empty() {
            return Ok((changes, left_out));
        }
        let mut status = vec!["status", "--porcelain", "-z", LOOK_AT_NO_OTHER];
        status.extend(["--no-renames", "--untracked-files=all", "--"]);
        status.extend(paths);
        let said = self.run(&status, Vec::new())?;
        for entry in said.split(|byte| *byte == 0) {
            // Two status letters, for index and work tree, and a blank.
            let Some((letters, path)) = entry.split_at_checked(3) else {
                continue;
            };
            let path = OsString::from_vec(path.to_vec());
            let there = std::fs::symlink_metadata(self.root.join(&path));
            let why = match &there {
                Ok(found) if found.is_dir() => Some("a nested repository".to_owned()),
                Ok(found) if found.is_file() && found.len() > MAX_COMMITTED => {
                    Some(format!("larger than {} MiB", MAX_COMMITTED >> 20))
                }
                Ok(_) | Err(_) => None,
            };
            match why {
                Some(why) => left_out.push(format!("{:?} ({why})", path.to_string_lossy())),
                None => changes.push(Change {
                    path,
                    is_in_folder: letters[1] != b' ',
                }),
            }
        }
        Ok((changes, left_out))
    }

    /// The first of these files that the git directory contains. Fails if the directory is not the first
    /// known one.
    fn has<const N: usize>(&self, files: [&str; N]) -> Result<Option<usize>, String> {
        let mut words = vec!["rev-parse", "--absolute-git-dir"];
        words.extend(files.iter().flat_map(|file| ["--git-path", file]));
        let told = self.bounded(self.command(&words), Vec::new())?;
        let mut lines = said_by(told)?;
        lines.pop();
        let lines = lines.split(|byte| *byte == b'\n');
        let mut paths = lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
        let now = paths.next().unwrap_or_default();
        let first = self.first.get_or_init(|| now.clone());
        if now != *first {
            let (now, first) = (now.display(), first.display());
            return Err(format!(
                ".git leads to {now} now, and led to {first}; put it back, or start NEXUS again \
                 to commit there"
            ));
        }
        Ok(paths.position(|path| self.root.join(path).symlink_metadata().is_ok()))
    }

    /// Runs git with paths on its standard input.
    fn fed(&self, words: &[&str], paths: Vec<u8>) -> Result<(), String> {
        let from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let words: Vec<&str> = words.iter().copied().chain(from).collect();
        self.run(&words, paths).map(drop)
    }

    fn said(&self, words: &[&str]) -> Result<String, String> {
        let said = self.run(words, Vec::new())?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// Runs git with this standard input; returns its output, or the reason of its failure.
    fn run(&self, words: &[&str], fed: Vec<u8>) -> Result<Vec<u8>, String> {
        let told = self.bounded(self.command(&FILTERS), Vec::new())?;
        let mut git = self.command(words);
        git.envs(filters_in(&told));
        said_by(self.bounded(git, fed)?)
    }

    /// A git command that runs no hooks, since agents can write to the repository.
    fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("timeout");
        git.args(["--kill-after=2", self.patience, "git"])
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "commit.gpgSign=false", "-c", "core.fsmonitor=false"])
            // Maintenance runs programs and continues in the background.
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(words)
            .current_dir(&self.root)
            // If the root has no repository, one in a folder above it is not the team's.
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.root.parent().unwrap_or(&self.root),
            )
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // Missing objects are not fetched.
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_AUTHOR_NAME", "NEXUS")
            .env("GIT_AUTHOR_EMAIL", "nexus@localhost")
            .env("GIT_COMMITTER_NAME", "NEXUS")
            .env("GIT_COMMITTER_EMAIL", "nexus@localhost")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE");
        git
    }

    /// Runs a git command to its end within the timeout.
    fn bounded(&self, mut git: Command, fed: Vec<u8>) -> Result<Output, String> {
        let failed = |error: io::Error| format!("git: {error}");
        git.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = git.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // git may end without reading, and reports the reason.
            let _ = stdin.write_all(&fed);
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        read(child.stdout.take(), &mut stdout).map_err(failed)?;
        read(child.stderr.take(), &mut stderr).map_err(failed)?;
        let status = child.wait().map_err(failed)?;
        if status.code() == Some(TIMED_OUT) {
            let secs = self.patience;
            return Err(format!("git did not end within {secs} s, and was ended"));
        }
        if stdout.len() as u64 > MAX_SAID {
            return Err("git: it says more than can be read".into());
        }
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }
}

/// Reads one byte more than the limit; git ends when it writes more.
fn read(from: Option<impl Read>, into: &mut Vec<u8>) -> io::Result<usize> {
    from.map_or(Ok(0), |from| from.take(MAX_SAID + 1).read_to_end(into))
}

/// The output of git, or the reason of its failure.
fn said_by(output: Output) -> Result<Vec<u8>, String> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or("git failed");
    Err(format!("git: {line}"))
}

fn listed<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<u8> {
    let mut list = Vec::new();
    for change in changes {
        list.extend(change.path.as_encoded_bytes());
        list.push(0);
    }
    list
}

/// Nested repositories are not examined, since they also name programs.
const LOOK_AT_NO_OTHER: &str = "--ignore-submodules=dirty";

/// Lists the filter programs of the configuration, and the files that name them.
const FILTERS: [&str; 6] = [
    "config",
    "--show-scope",
    "--null",
    "--name-only",
    "--get-regexp",
    r"^filter\..*\.(clean|smudge|process|required)$",
];

/// The environment variables that disable the filters named by the repository itself.
/// The user's own filters stay enabled.
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

#[cfg(test)]
mod tests;
