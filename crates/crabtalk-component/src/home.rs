//! The home of a component's files: `$CRABTALK_HOME`, else `~/.crabtalk`.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// The home that a component shares with the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// Creates a home at an absolute path.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads the home from the environment. Fails if neither `CRABTALK_HOME` nor the
    /// user's home folder is set.
    pub fn of_environment() -> anyhow::Result<Self> {
        let given = std::env::var_os("CRABTALK_HOME").filter(|home| !home.is_empty());
        let path = match given {
            Some(home) => std::path::absolute(PathBuf::from(home))?,
            None => std::env::home_dir()
                .context("neither CRABTALK_HOME nor HOME is set")?
                .join(".crabtalk"),
        };
        Ok(Self(path))
    }

    /// The path of the home.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of port files.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    /// The folder for a component's derived files.
    #[must_use]
    pub fn state(&self, name: &str) -> PathBuf {
        self.0.join("state").join(name)
    }

    /// A component's log.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.0.join("logs").join(format!("{name}.log"))
    }

    /// Creates a private folder in the home.
    pub fn make(&self, folder: &Path) -> anyhow::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        crate::system::private(builder.recursive(true))
            .create(folder)
            .with_context(|| format!("cannot create {}", folder.display()))
    }
}
