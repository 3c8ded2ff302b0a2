//! Changes `config.toml` for clients (OPS-4).
//!
//! Invariants: a file is changed only if its text is in force, so that an unfinished
//! manual edit never takes effect; an invalid configuration is never written; a written
//! one is in force.

use crate::compose;
use crate::error::Error;
use crate::login;
use crabtalk_config::{Config, ConfigFile, Error as ConfigError, Home, Warning, write_atomic};
use std::path::Path;

/// Replaces the file's text, which must equal `base`. The text need not be in force, so
/// that a client can repair a broken file.
pub(crate) fn replace(home: &Home, base: Option<&str>, text: &str) -> Result<(), Error> {
    let path = home.config_file();
    if compose::text(home)?.as_deref() != base {
        return Err(ConfigError::Conflict(path).into());
    }
    check(text, &path)?;
    Ok(write_atomic(&path, text)?)
}

/// Checks a text as a configuration.
fn check(text: &str, path: &Path) -> Result<Vec<Warning>, Error> {
    let (config, warnings) = Config::parse(text, path, &login::env)?;
    let chosen = compose::chosen(&config).map_err(Error::Invalid)?;
    chosen.check().map_err(Error::Invalid)?;
    Ok(warnings)
}

/// Sets or removes the value of a dotted key.
pub(crate) fn set(
    file: &mut ConfigFile,
    key: &str,
    value: Option<&serde_json::Value>,
) -> Result<(), Error> {
    let path: Vec<&str> = key.split('.').collect();
    if path.iter().any(|part| part.trim().is_empty()) {
        return Err(Error::Invalid(format!(
            "{key:?} is not a key: write it with dots, as in limits.queued_runs"
        )));
    }
    let unknown = |file: &ConfigFile| {
        let (_, warnings) = Config::parse(&file.text(), Path::new("config.toml"), &login::env)?;
        let keys = warnings.into_iter().filter_map(|warning| warning.unknown);
        Ok::<_, ConfigError>(keys.collect::<Vec<_>>())
    };
    let before = unknown(file)?;
    match value {
        Some(value) => file.set(&path, value)?,
        None if file.remove(&path) => {}
        None => {
            return Err(Error::NotFound(format!(
                "config.toml does not contain {key}; its default is in force"
            )));
        }
    }
    // An unknown key in the file is a warning; setting one is an error.
    match unknown(file)?.into_iter().find(|key| !before.contains(key)) {
        Some(key) => Err(Error::Invalid(format!("nothing was written: {key}"))),
        None => Ok(()),
    }
}

/// Changes the file if its text equals `in_force`.
pub(crate) fn edit(
    home: &Home,
    in_force: Option<&str>,
    change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = home.config_file();
    let env = login::env;
    let mut file = ConfigFile::open(&path)?;
    if compose::text(home)?.as_deref() != in_force {
        return Err(Error::Conflict(format!(
            "{} was changed since the daemon read it: run `crabtalk daemon reload`, then repeat the change",
            path.display()
        )));
    }
    let (before, _) = Config::parse(&file.text(), &path, &env)?;
    change(&mut file, &before)?;
    check(&file.text(), &path)?;
    file.save(&env)?;
    Ok(())
}
