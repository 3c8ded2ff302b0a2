//! The home folder: `$CRABTALK_HOME`, else `~/.crabtalk` (OPS-5).
//!
//! Invariant: every path of CrabTalk comes from here, so that nothing is written outside the
//! home by accident.

use crate::Error;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders are accessible only to their owner (OPS-5).
const FOLDER_MODE: u32 = 0o700;

/// A lookup of environment variables.
pub type Env<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// The home folder and the paths in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    user_home: Option<PathBuf>,
}

impl Home {
    /// Finds the home: `$CRABTALK_HOME`, else `$HOME/.crabtalk`. A relative path refers to the
    /// working directory. Nothing is created.
    pub fn from_env(env: &Env<'_>) -> Result<Self, Error> {
        let set = |name: &str| {
            env(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let user_home = set("HOME");
        let root = set("CRABTALK_HOME")
            .or_else(|| user_home.as_ref().map(|home| home.join(".crabtalk")))
            .ok_or(Error::NoHome)?;
        Self::at(&root, user_home)
    }

    /// Creates the handle of a home at a folder. `user_home` is the value of `~`.
    pub fn at(root: &Path, user_home: Option<PathBuf>) -> Result<Self, Error> {
        let absolute = std::path::absolute(root).map_err(|e| Error::io("resolve", root, e))?;
        // Canonical as far as the path exists, so that a home has one path (STORE-6).
        let root = match fs::canonicalize(&absolute) {
            Ok(root) => root,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => absolute,
            Err(e) => return Err(Error::io("open the home folder", root, e)),
        };
        Ok(Self { root, user_home })
    }

    /// Creates missing folders except the trash (0700), removes others' rights to existing
    /// ones, and returns the home with its canonical path. Files in the place of skills or
    /// memory are ignored, since these folders are optional. A full or read-only disk is not an
    /// error.
    pub fn create(&self) -> Result<Self, Error> {
        let folders = [
            self.root.clone(),
            self.config_dir(),
            self.agents_dir(),
            self.sessions_dir(),
            self.state_dir(),
            self.run_dir(),
            self.logs_dir(),
        ];
        for folder in &folders {
            match create_private(folder) {
                Err(e) if is_unwritable(&e) && self.root.is_dir() => {}
                created => created.map_err(|e| Error::io("create the folder", folder, e))?,
            }
        }
        for folder in [self.skills_dir(), self.memory_dir()] {
            match create_private(&folder) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists || is_unwritable(&e) => {}
                created => created.map_err(|e| Error::io("create the folder", &folder, e))?,
            }
        }
        let own = [self.skills_dir(), self.memory_dir(), self.trash_dir()];
        for folder in folders.iter().chain(&own) {
            // The target of a link may be shared on purpose.
            let found = match *folder == self.root {
                true => fs::metadata(folder),
                false => fs::symlink_metadata(folder),
            };
            if found.is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o077 != 0) {
                match fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)) {
                    Err(e) if is_unwritable(&e) => {}
                    made => made.map_err(|e| Error::io("make private", folder, e))?,
                }
            }
        }
        Self::at(&self.root, self.user_home.clone())
    }

    /// The home folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The user's home, the last default for a working directory (CONV-6).
    pub fn user_home(&self) -> Option<&Path> {
        self.user_home.as_deref()
    }

    /// Replaces a leading `~` by the user's home.
    pub fn expand_tilde(&self, path: &str) -> PathBuf {
        expand_tilde(path, self.user_home.as_deref())
    }

    /// `config/`.
    pub fn config_dir(&self) -> PathBuf {
        self.root.join("config")
    }

    /// `config/config.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.config_dir().join("config.toml")
    }

    /// `config/agents/`.
    pub fn agents_dir(&self) -> PathBuf {
        self.config_dir().join("agents")
    }

    /// `config/skills/`.
    pub fn skills_dir(&self) -> PathBuf {
        self.config_dir().join("skills")
    }

    /// `config/memory/`.
    pub fn memory_dir(&self) -> PathBuf {
        self.config_dir().join("memory")
    }

    /// `config/Crab.md`.
    pub fn identity_file(&self) -> PathBuf {
        self.config_dir().join("Crab.md")
    }

    /// `config/approvals.toml`.
    pub fn approvals_file(&self) -> PathBuf {
        self.config_dir().join("approvals.toml")
    }

    /// `config/crons.toml`.
    pub fn crons_file(&self) -> PathBuf {
        self.config_dir().join("crons.toml")
    }

    /// `config/subscriptions.toml`.
    pub fn subscriptions_file(&self) -> PathBuf {
        self.config_dir().join("subscriptions.toml")
    }

    /// `sessions/`: the conversations.
    pub fn sessions_dir(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// `sessions/trash/`: removed conversations.
    pub fn trash_dir(&self) -> PathBuf {
        self.sessions_dir().join("trash")
    }

    /// `state/`: records, indexes and other state.
    pub fn state_dir(&self) -> PathBuf {
        self.root.join("state")
    }

    /// `state/trust.toml`.
    pub fn trust_file(&self) -> PathBuf {
        self.state_dir().join("trust.toml")
    }

    /// `run/`: port files of components and the daemon's pid.
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run")
    }

    /// `logs/`.
    pub fn logs_dir(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// `logs/daemon.log`.
    pub fn log_file(&self) -> PathBuf {
        self.logs_dir().join("daemon.log")
    }

    /// `daemon.sock`.
    pub fn socket(&self) -> PathBuf {
        self.root.join("daemon.sock")
    }
}

/// Creates a private folder and missing parents.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Whether a disk is full or read-only.
fn is_unwritable(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
    )
}

pub(crate) fn expand_tilde(path: &str, user_home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), user_home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        }
    }

    #[test]
    fn home_is_read_from_the_environment() {
        let own = env(&[("CRABTALK_HOME", "/nowhere/h"), ("HOME", "/nowhere/me")]);
        assert_eq!(
            Home::from_env(&own).unwrap().root(),
            Path::new("/nowhere/h")
        );
        let default = env(&[("CRABTALK_HOME", ""), ("HOME", "/nowhere/me")]);
        assert_eq!(
            Home::from_env(&default).unwrap().root(),
            Path::new("/nowhere/me/.crabtalk")
        );
        assert_eq!(
            Home::from_env(&env(&[])).unwrap_err().to_string(),
            "neither CRABTALK_HOME nor HOME is set: set one, or name a folder with --home"
        );
    }

    #[test]
    fn creation_makes_private_folders() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let home = Home::at(&link, None).unwrap().create().unwrap();
        assert_eq!(home.root(), fs::canonicalize(&real).unwrap());
        for path in [
            home.root().to_owned(),
            home.config_dir(),
            home.sessions_dir(),
            home.logs_dir(),
        ] {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", path.display());
        }
        assert!(!home.trash_dir().exists(), "it is created on demand");
        assert_eq!(
            home.create().unwrap(),
            home,
            "creating twice changes nothing"
        );
    }

    #[test]
    fn open_folders_are_made_private_except_behind_links() {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path| {
            fs::create_dir_all(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let home = Home::at(&folder.path().join("home"), None).unwrap();
        let of_ours = [
            home.config_dir(),
            home.agents_dir(),
            home.memory_dir(),
            home.sessions_dir(),
            home.trash_dir(),
            home.state_dir(),
            home.run_dir(),
            home.logs_dir(),
        ];
        for path in &of_ours {
            open(path);
        }
        let shared = folder.path().join("shared");
        open(&shared);
        std::os::unix::fs::symlink(&shared, home.skills_dir()).unwrap();
        let home = home.create().unwrap();
        for path in &of_ours {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(home.root()), 0o700);
        assert_eq!(mode(&shared), 0o755, "the target of a link is left alone");
    }

    #[test]
    fn failed_creation_names_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Home::at(&file, None)
            .unwrap()
            .create()
            .unwrap_err()
            .with_causes();
        assert!(error.starts_with("cannot create the folder "), "{error}");
    }

    #[test]
    fn tilde_is_the_users_home() {
        let home = Home::at(Path::new("/nowhere"), Some("/me".into())).unwrap();
        for (path, want) in [
            ("~", "/me"),
            ("~/work", "/me/work"),
            ("~you", "~you"),
            ("/a/~", "/a/~"),
        ] {
            assert_eq!(home.expand_tilde(path), Path::new(want));
        }
    }
}
