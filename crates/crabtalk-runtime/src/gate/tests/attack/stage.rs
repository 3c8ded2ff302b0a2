//! A private folder in which allowed commands run, with what they must not
//! touch.

use super::super::*;
use crabtalk_domain::tool::ShellCommand;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// What stands behind the names of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Programs {
    /// Programs that write down what they were given.
    Recorded,
    /// The ones of this machine.
    Real,
}

/// Names of recorded programs; all others that a command may name are canaries.
const RECORDED: [&str; 8] = ["git", "ls", "cat", "grep", "cargo", "show", "sort", "env"];

/// Programs that must not run.
const CANARIES: [&str; 9] = ["canary", "touch", "rm", "tee", "sh", "id", "cp", "mv", "x"];

/// Where a program of this machine is.
pub(super) fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// How long a command may go on: what it did until then counts.
const SECONDS_TO_RUN: &str = "30";

pub(super) struct Stage {
    pub(super) programs: Programs,
    folder: tempfile::TempDir,
    before: BTreeMap<PathBuf, (u64, SystemTime)>,
}

impl Stage {
    pub(super) fn new(programs: Programs) -> Self {
        let folder = tempfile::tempdir().expect("a private folder");
        let root = folder.path();
        for name in ["bin", "work/sub", "home"] {
            fs::create_dir_all(root.join(name)).expect("made");
        }
        // Names that look like options, assignments and quotes.
        for name in [
            "a",
            "b.rs",
            "--output=O",
            "-delete",
            "SHELL=x",
            "it's",
            "sub/c d",
            "*",
            "O2",
        ] {
            fs::write(root.join("work").join(name), "b\na\n").expect("written");
        }
        fs::write(root.join("work/Makefile"), "all:\n\t@true\n").expect("written");
        fs::write(root.join("work/p.py"), "print(1)\n").expect("written");
        let stage = Self {
            programs,
            folder,
            before: BTreeMap::new(),
        };
        // In one piece: two of a pipeline may write at once.
        let record = r#"end=$(printf '\1'); printf '%s\0' "${0##*/}" "$@" "$end" >>"$RECORD""#;
        let canary = ">>\"$CANARY\"";
        if programs == Programs::Recorded {
            RECORDED
                .iter()
                .for_each(|name| stage.program(&format!("bin/{name}"), record));
        }
        CANARIES
            .iter()
            .for_each(|name| stage.program(&format!("bin/{name}"), canary));
        stage.program("work/canary", canary);
        if programs == Programs::Real {
            stage.repository();
        }
        Self {
            before: stage.listed(),
            ..stage
        }
    }

    fn program(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made a program");
    }

    /// A repository with hooks, if git is there.
    fn repository(&self) {
        let script = "git init -q . && git add a b.rs && git -c user.name=a -c user.email=a@b commit -qm x; \
                      git config core.fsmonitor \"$PWD/canary\"; git config core.pager ./canary; \
                      cp canary .git/hooks/post-index-change; cp canary .git/hooks/pre-commit; echo c >> a; true";
        let mut bash = self.bash(&script.into());
        bash.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        bash.status().expect("bash runs");
    }

    fn bash(&self, command: &ShellCommand) -> Command {
        let root = self.folder.path();
        let own = root.join("bin").display().to_string();
        let path = match self.programs {
            Programs::Recorded => own,
            Programs::Real => {
                let real = std::env::var("PATH").unwrap_or_default();
                format!("{real}:{own}")
            }
        };
        let bash = found("bash").expect("asked for before");
        // Some go on for ever, `shuf -r` for one; a call of the daemon has its time too.
        let mut bash = match found("timeout") {
            Some(timeout) => {
                let mut limited = Command::new(timeout);
                limited.args(["--signal=KILL", SECONDS_TO_RUN]).arg(bash);
                limited
            }
            None => Command::new(bash),
        };
        bash.args(["-c", &command.text])
            .env_clear()
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("PATH", path)
            .env("HOME", root.join("home"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("RECORD", root.join("record"))
            .env("CANARY", root.join("work/CANARY"))
            .current_dir(root.join("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        bash
    }

    /// Runs a command; the words that recorded programs were given.
    pub(super) fn run(&self, command: &ShellCommand) -> Vec<Vec<String>> {
        let record = self.folder.path().join("record");
        let _ = fs::remove_file(&record);
        self.bash(command).status().expect("bash runs");
        let text = fs::read(&record).unwrap_or_default();
        let _ = fs::remove_file(&record);
        let mut all = vec![Vec::new()];
        for word in text.split(|byte| *byte == 0) {
            if word == b"\x01" {
                all.push(Vec::new());
            } else {
                let words = all.last_mut().expect("never empty");
                words.push(String::from_utf8_lossy(word).into_owned());
            }
        }
        all.pop();
        all
    }

    /// What is there now that was not, or differs.
    pub(super) fn changes(&self) -> Vec<PathBuf> {
        let now = self.listed();
        if now == self.before {
            return Vec::new();
        }
        let new = now
            .iter()
            .filter(|(path, is)| self.before.get(*path) != Some(*is));
        let gone = self.before.keys().filter(|path| !now.contains_key(*path));
        new.map(|(path, _)| path).chain(gone).cloned().collect()
    }

    fn listed(&self) -> BTreeMap<PathBuf, (u64, SystemTime)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("readable").flatten() {
                let meta = fs::symlink_metadata(entry.path()).expect("there");
                if meta.is_dir() {
                    folders.push(entry.path());
                } else {
                    let changed = meta.modified().expect("known");
                    found.insert(entry.path(), (meta.len(), changed));
                }
            }
        }
        found
    }

    pub(super) fn judge(&self, rules: &str, text: &str) -> Verdict {
        let work = self.folder.path().join("work");
        let call = Call {
            cwd: work.to_str().expect("plain"),
            ..Call::bash(rules, text)
        };
        call.verdict()
    }
}
