//! Changes to `config.toml` by protocol (OPS-4).
//!
//! Invariants: only a file that says what is in force is changed, so that
//! nobody's half-done edit takes effect; what would not work is not written;
//! what was written is in force.

use crate::compose;
use crate::login;
use crabtalk_config::{Config, ConfigFile, Error as ConfigError, Home, read_limited};
use std::path::PathBuf;

/// Largest configuration file, as for reading.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why the configuration was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// The file, or what it would become, is not valid.
    #[error("{}", .0.with_causes())]
    Config(#[from] ConfigError),
    /// What it would become does not work.
    #[error("{0}")]
    Invalid(String),
    /// What is to be changed does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Somebody edited the file, and nobody said that it is finished.
    #[error(
        "{} was changed since the daemon read it: run `crabtalk daemon reload`, then repeat this",
        .0.display()
    )]
    Changed(PathBuf),
    /// It is written, and something else does not work.
    #[error("config.toml was changed, but could not be taken: {0}")]
    NotTaken(String),
}

impl EditError {
    /// The wire's code (WIRE-3).
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Config(ConfigError::Conflict { .. }) | Self::Changed(_) => 409,
            Self::Config(ConfigError::Io { .. }) | Self::NotTaken(_) => 500,
            Self::Config(ConfigError::TooLarge { .. }) => 413,
            Self::NotFound(_) => 404,
            Self::Config(
                ConfigError::Invalid(_)
                | ConfigError::BadEdit(_)
                | ConfigError::NoKey { .. }
                | ConfigError::NoHome
                | ConfigError::MissingVariable { .. },
            )
            | Self::Invalid(_) => 400,
        }
    }
}

/// The file's text, to be compared with later.
pub(crate) fn text(home: &Home) -> Result<Option<String>, ConfigError> {
    read_limited(&home.config_file(), MAX_BYTES)
}

/// Changes the file, whose text has to be `in_force`.
pub(crate) fn edit(
    home: &Home,
    in_force: Option<&str>,
    change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let path = home.config_file();
    let env = login::env;
    let mut file = ConfigFile::open(&path)?;
    if text(home)?.as_deref() != in_force {
        return Err(EditError::Changed(path));
    }
    let (before, _) = Config::parse(&file.text(), &path, &env)?;
    change(&mut file, &before)?;
    let (after, _) = Config::parse(&file.text(), &path, &env)?;
    let chosen = compose::chosen(&after).map_err(EditError::Invalid)?;
    chosen.check().map_err(EditError::Invalid)?;
    file.save(&env)?;
    Ok(())
}
