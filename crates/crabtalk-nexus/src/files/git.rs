//! git in the repository of the team: what changed there, and commits of it.
//!
//! Invariants: no program is run that the repository names, nor one that a repository
//! within it names; a commit goes into the repository that the root had first and no
//! other; nothing is added during a merge or the like; `timeout` ends a git that hangs, in
//! a group of processes of its own, also when NEXUS ended; a look takes no lock, so that no
//! agent's git fails for it.

use crate::world::Commit;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Seconds that a git may take. A file of an agent may block it forever,
/// such as a pipe that is called `.gitignore`.
const PATIENCE: &str = "60";

/// The status of `timeout` for a program that it ended.
const TIMED_OUT: i32 = 124;

/// What one git tells at most: the names of a hundred thousand files.
const MAX_SAID: u64 = 16 * 1024 * 1024;

/// Largest file that is committed: the repository keeps each version of it.
const MAX_COMMITTED: u64 = 64 * 1024 * 1024;

/// How often a commit is tried while the index is locked.
const TRIES: u32 = 20;

/// Between two tries: a git of an agent is done within that, as a rule.
const AGAIN: Duration = Duration::from_millis(100);

/// Files of git that mark an unfinished operation.
const UNFINISHED: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
];

/// git in the repository of a team.
#[derive(Debug, Clone)]
pub(super) struct Git {
    root: PathBuf,
    patience: &'static str,
    /// The first known folder of git. A replacement by an agent at
    /// `.git` may lead to any repository of its user.
    first: Arc<OnceLock<PathBuf>>,
}

/// The paths to commit, by their names in the repository.
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

    /// Makes the repository.
    pub(super) fn init(&self) -> Result<(), String> {
        self.said(&["init", "--quiet"]).map(drop)
    }

    /// A file below this path that is not committed.
    pub(super) fn dirty(&self, path: &str) -> Result<Option<String>, String> {
        let status = ["status", "--porcelain", LOOK_AT_NO_OTHER, "--", path];
        let dirty = self.said(&status)?;
        let line = dirty.lines().next();
        Ok(line.map(|line| line.get(3..).unwrap_or(line).to_owned()))
    }

    /// Commits what changed below these paths: which commit, or that nothing changed.
    /// Paths that others staged stay staged.
    pub(super) fn commit(&self, paths: &[PathBuf], message: &str) -> Result<Commit, String> {
        self.commit_when(paths, message, || std::thread::sleep(AGAIN))
    }

    /// The same; `wait` is called before each further try.
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

    /// What changed below these paths, and what of it is not committed, with the reason.
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
            // Two letters, the index's and the folder's, and a blank.
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

    /// The first of these that the folder of git has, if it is still the one that was
    /// found first.
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

    /// Runs git on paths that it is fed.
    fn fed(&self, words: &[&str], paths: Vec<u8>) -> Result<(), String> {
        let from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let words: Vec<&str> = words.iter().copied().chain(from).collect();
        self.run(&words, paths).map(drop)
    }

    fn said(&self, words: &[&str]) -> Result<String, String> {
        let said = self.run(words, Vec::new())?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// Runs git with this on its standard input: what it said, or why it failed.
    fn run(&self, words: &[&str], fed: Vec<u8>) -> Result<Vec<u8>, String> {
        let told = self.bounded(self.command(&FILTERS), Vec::new())?;
        let mut git = self.command(words);
        git.envs(filters_in(&told));
        said_by(self.bounded(git, fed)?)
    }

    /// A git that runs no hook: what the repository names is the agents' to write.
    fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("timeout");
        git.args(["--kill-after=2", self.patience, "git"])
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "commit.gpgSign=false", "-c", "core.fsmonitor=false"])
            // What puts a repository in order runs programs, too, and goes on behind us.
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(words)
            .current_dir(&self.root)
            // Where the root has no repository any more, one around it is not the team's.
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.root.parent().unwrap_or(&self.root),
            )
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
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
            .env_remove("GIT_INDEX_FILE");
        git
    }

    /// Runs a git to its end, which comes within the bound.
    fn bounded(&self, mut git: Command, fed: Vec<u8>) -> Result<Output, String> {
        let failed = |error: io::Error| format!("git: {error}");
        git.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = git.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ended does not read, and says why.
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

/// Reads one byte more than is kept at most; git ends when it goes on to write.
fn read(from: Option<impl Read>, into: &mut Vec<u8>) -> io::Result<usize> {
    from.map_or(Ok(0), |from| from.take(MAX_SAID + 1).read_to_end(into))
}

/// What git said, or why it failed.
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

/// A repository within the team's is not looked into: it names programs, too.
const LOOK_AT_NO_OTHER: &str = "--ignore-submodules=dirty";

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
/// Files of other users are not written.
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
