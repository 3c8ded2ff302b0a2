//! The sandbox of commands (GATE-5): what it opens, and how a process shuts
//! itself in.
//!
//! Landlock only ever allows, so a folder that must stay closed is never below
//! one that is opened: the opened one is taken apart into its entries instead.
//! Invariant: where the kernel lacks a needed piece the command does not run.

use crate::guardian::SandboxPolicy;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
mod restrict;
#[cfg(target_os = "linux")]
pub(crate) use restrict::restrict;

/// Folders of the system: programs, libraries, their configuration, and what
/// the kernel tells. `/proc` shows other processes' names, not their
/// environment or memory: landlock forbids what tracing them would need.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/run/current-system",
    "/run/systemd/resolve",
    "/var/lib/dpkg",
    "/var/lib/alternatives",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Devices that are written to without effect on anything.
const DEVICES: &[&str] = &["/dev/null", "/dev/tty", "/dev/zero", "/dev/full"];

/// Toolchains below the person's home. Never a whole `~/.cargo` or `~/.npm`
/// folder of a kind that keeps credentials beside its programs.
const TOOLCHAINS: &[&str] = &[
    ".cargo/bin",
    ".cargo/env",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/config.toml",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".nvm",
    ".fnm",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".pyenv",
    ".rbenv",
    ".asdf/installs",
    ".asdf/shims",
    ".asdf/bin",
    ".sdkman/candidates",
    "go",
    ".nix-profile",
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
];

/// Folders below the person's home that stay closed even inside a working
/// directory: keys and logins.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".bash_history",
    ".zsh_history",
];

/// Entries into which opened folders are taken apart at most, so that a
/// working directory of a million files costs an error, not a minute.
const MAX_PATHS: usize = 10_000;

/// What the owner says of every sandboxed command.
#[derive(Debug, Clone, Default)]
pub struct SandboxConfig {
    /// Whether every agent's commands run in it, not only those of agents
    /// that ask for it.
    pub always: bool,
    /// Whether sockets beyond Unix ones may be made.
    pub network: bool,
    /// Opened for reading beside system, toolchains and working directory.
    pub read: Vec<PathBuf>,
    /// Opened for changes beside working and temporary directory.
    pub write: Vec<PathBuf>,
}

/// The places a policy is made from.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    pub(crate) config: &'a SandboxConfig,
    pub(crate) cwd: &'a Path,
    /// `$CRABTALK_HOME`.
    pub(crate) home: &'a Path,
    pub(crate) user_home: Option<&'a Path>,
    /// The children's `PATH`, taken apart.
    pub(crate) programs: &'a [PathBuf],
    /// What of `home` this conversation may read.
    pub(crate) readable: &'a [PathBuf],
}

impl Places<'_> {
    /// What a command may reach. Touches the disk.
    pub(crate) fn policy(&self) -> Result<SandboxPolicy, String> {
        let closed = self.closed();
        let mut write = Vec::new();
        open(self.cwd, &closed, &mut write)?;
        for path in &self.config.write {
            open(path, &closed, &mut write)?;
        }
        write.extend(DEVICES.iter().map(PathBuf::from));

        let mut read = Vec::new();
        let toolchains = self
            .user_home
            .into_iter()
            .flat_map(|h| TOOLCHAINS.iter().map(|t| h.join(t)));
        let system = SYSTEM.iter().map(PathBuf::from).chain(toolchains);
        for path in system
            .chain(self.programs.iter().cloned())
            .chain(self.config.read.clone())
        {
            open(&path, &closed, &mut read)?;
        }
        // Inside the closed home, hence not subject to it.
        read.extend(self.readable.iter().filter_map(|p| p.canonicalize().ok()));
        Ok(SandboxPolicy {
            write,
            read,
            network: self.config.network,
        })
    }

    fn closed(&self) -> Vec<PathBuf> {
        let secrets = self
            .user_home
            .into_iter()
            .flat_map(|h| SECRETS.iter().map(|s| h.join(s)));
        std::iter::once(self.home.to_path_buf())
            .chain(secrets)
            .filter_map(|path| path.canonicalize().ok())
            .collect()
    }
}

/// Adds `path`, or what of it is not closed. What does not exist opens nothing.
fn open(path: &Path, closed: &[PathBuf], into: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(path) = path.canonicalize() else {
        return Ok(());
    };
    if closed.iter().any(|c| path.starts_with(c)) {
        return Ok(());
    }
    if into.len() == MAX_PATHS {
        return Err(format!(
            "the sandbox would have to open more than {MAX_PATHS} entries one by one, because the working directory lies above something closed; choose one below"
        ));
    }
    if !closed.iter().any(|c| c.starts_with(&path)) {
        into.push(path);
        return Ok(());
    }
    // Something closed lies below: open its neighbours, not the folder.
    let Ok(entries) = std::fs::read_dir(&path) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        // A link is judged where it leads; that place is opened on its own.
        if entry.file_type().is_ok_and(|t| !t.is_symlink()) {
            open(&entry.path(), closed, into)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(cwd: &Path, home: &Path, user_home: &Path) -> SandboxPolicy {
        Places {
            config: &SandboxConfig::default(),
            cwd,
            home,
            user_home: Some(user_home),
            programs: &[],
            readable: &[],
        }
        .policy()
        .expect("makes sense")
    }

    #[test]
    fn a_folder_above_something_closed_is_taken_apart() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        for folder in [
            ".crabtalk/config",
            ".ssh",
            "work",
            ".config/gh",
            ".config/git",
        ] {
            std::fs::create_dir_all(user.join(folder)).expect("creates");
        }
        let policy = policy(&user, &user.join(".crabtalk"), &user);
        let mut below: Vec<&Path> = policy
            .write
            .iter()
            .filter_map(|p| p.strip_prefix(&user).ok())
            .collect();
        below.sort();
        assert_eq!(below, [Path::new(".config/git"), Path::new("work")]);
    }

    #[test]
    fn a_working_directory_inside_the_home_opens_nothing() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        let cwd = user.join(".crabtalk/config");
        std::fs::create_dir_all(&cwd).expect("creates");
        let policy = policy(&cwd, &user.join(".crabtalk"), &user);
        assert!(
            policy.write.iter().all(|p| p.starts_with("/dev")),
            "{:?}",
            policy.write
        );
    }
}
